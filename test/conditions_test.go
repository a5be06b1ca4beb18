package test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// verdict is what a condition saw.
type verdict struct {
	holds          bool
	saw            string // for the message if that is not what was expected
	printed        bool   // stdout and stderr are set
	stdout, stderr string // of a program that was run
}

// condition looks once. An error means that it could not tell.
type condition func(s *scenario, args []string) (verdict, error)

// conditions are those that eventually and stays take. They are commands, too.
func conditions() map[string]condition {
	return map[string]condition{
		"has":     (*scenario).has,
		"gone":    (*scenario).gone,
		"is":      (*scenario).is,
		"count":   (*scenario).count,
		"synced":  func(s *scenario, args []string) (verdict, error) { return s.lastSync("synced", args) },
		"partial": func(s *scenario, args []string) (verdict, error) { return s.lastSync("sync partial", args) },
		"failed":  func(s *scenario, args []string) (verdict, error) { return s.lastSync("sync failed", args) },
		"log":     (*scenario).logged,
		"audit":   (*scenario).audited,
		"asked":   (*scenario).asked,
		"posted":  (*scenario).posted,
		"http":    (*scenario).request,
		"kubectl": func(s *scenario, args []string) (verdict, error) {
			return s.program(append([]string{"kubectl"}, args...))
		},
		"exec":   (*scenario).program,
		"output": (*scenario).fileMatches,
	}
}

// print makes the output of what was run the script's stdout and stderr.
func (s *scenario) print(v verdict) {
	if v.printed { // even if it is nothing: what was printed before is over
		fmt.Fprint(s.ts.Stdout(), v.stdout)
		fmt.Fprint(s.ts.Stderr(), v.stderr)
	}
}

// wanted is a condition as it stands after eventually and stays.
type wanted struct {
	name    string
	look    condition
	args    []string
	negated bool
}

// parseWanted reads [-t DURATION] [!] CONDITION.
func parseWanted(name string, args []string, usual time.Duration) (wanted, time.Duration, error) {
	args, err := flags(name, args, func(f *flag.FlagSet) { f.DurationVar(&usual, "t", usual, "") })
	if err != nil {
		return wanted{}, 0, err
	}
	var w wanted
	if len(args) > 0 && args[0] == "!" {
		w.negated, args = true, args[1:]
	}
	if len(args) == 0 {
		return wanted{}, 0, fmt.Errorf("%s what?", name)
	}
	w.name, w.look, w.args = args[0], conditions()[args[0]], args[1:]
	if w.look == nil {
		return wanted{}, 0, fmt.Errorf("there is no condition %q", args[0])
	}
	return w, usual, nil
}

// try looks once and returns what is wrong.
func (w wanted) try(s *scenario) (verdict, error) {
	v, err := w.look(s, w.args)
	if err == nil && v.holds == w.negated {
		err = errors.New(v.saw)
	}
	return v, err
}

// pause is how long to wait between two looks: programs cost more.
func (w wanted) pause() time.Duration {
	if w.name == "kubectl" || w.name == "exec" {
		return 500 * time.Millisecond
	}
	return 100 * time.Millisecond
}

func (s *scenario) eventually(args []string) error {
	w, limit, err := parseWanted("eventually", args, time.Minute)
	if err != nil {
		return err
	}
	s.waits = true
	defer func() { s.waits = false }()
	deadline := time.Now().Add(limit)
	for {
		v, err := w.try(s)
		if err == nil {
			s.print(v)
			return nil
		}
		if err := s.alive(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		time.Sleep(w.pause())
	}
}

// alive reports a daemon that has ended by itself, for which it makes no sense
// to wait.
func (s *scenario) alive() error {
	for _, d := range s.daemons {
		if !d.over && d.Ended() {
			return fmt.Errorf("the daemon %s ended: %w", d.name, expectStatus(d.Err(), -1))
		}
	}
	return nil
}

func (s *scenario) stays(args []string) error {
	w, limit, err := parseWanted("stays", args, 3*time.Second)
	if err != nil {
		return err
	}
	start := time.Now()
	for {
		v, err := w.try(s)
		if err != nil {
			return fmt.Errorf("after %s: %w", time.Since(start).Round(time.Millisecond), err)
		}
		if time.Since(start) > limit {
			s.print(v)
			return nil
		}
		time.Sleep(w.pause())
	}
}

// inNamespace parses -n and returns the other arguments.
func inNamespace(name string, args []string, more func(*flag.FlagSet)) (string, []string, error) {
	namespace := "default"
	args, err := flags(name, args, func(f *flag.FlagSet) {
		f.StringVar(&namespace, "n", namespace, "")
		if more != nil {
			more(f)
		}
	})
	return namespace, args, err
}

func (s *scenario) has(args []string) (verdict, error) { return s.existence("has", args, true) }

func (s *scenario) gone(args []string) (verdict, error) { return s.existence("gone", args, false) }

// existence holds if all the objects are there, or none of them is.
func (s *scenario) existence(name string, args []string, there bool) (verdict, error) {
	c, err := s.theCluster()
	if err != nil {
		return verdict{}, err
	}
	namespace, args, err := inNamespace(name, args, nil)
	if err != nil {
		return verdict{}, err
	}
	if len(args) == 0 {
		return verdict{}, fmt.Errorf("want %s [-n NAMESPACE] KIND/NAME…", name)
	}
	saw := verdict{holds: true}
	var yes, no []string
	for _, ref := range args {
		object, err := c.get(s.t.Context(), namespace, ref)
		if err != nil {
			return verdict{}, err
		}
		if object != nil {
			yes = append(yes, ref)
		} else {
			no = append(no, ref)
		}
		saw.holds = saw.holds && there == (object != nil)
	}
	saw.saw = fmt.Sprintf("there are %q, there are not %q", yes, no)
	return saw, nil
}

func (s *scenario) is(args []string) (verdict, error) {
	c, err := s.theCluster()
	if err != nil {
		return verdict{}, err
	}
	match := false
	namespace, args, err := inNamespace("is", args, func(f *flag.FlagSet) { f.BoolVar(&match, "match", false, "") })
	if err != nil {
		return verdict{}, err
	}
	if len(args) != 3 {
		return verdict{}, errors.New("want is [-n NAMESPACE] [-match] KIND/NAME PATH VALUE")
	}
	ref, path, want := args[0], args[1], args[2]
	if !match {
		want = "^" + regexp.QuoteMeta(want) + "$"
	}
	pattern, err := regexp.Compile(want)
	if err != nil {
		return verdict{}, err
	}
	object, err := c.get(s.t.Context(), namespace, ref)
	if err != nil {
		return verdict{}, err
	}
	if object == nil {
		return verdict{saw: "there is no " + ref}, nil
	}
	value, err := field(object, path)
	if err != nil {
		return verdict{}, err
	}
	return verdict{holds: pattern.MatchString(value), saw: fmt.Sprintf("%s of %s is %q", path, ref, value)}, nil
}

// let sets a variable of the script to the value of a field.
func (s *scenario) let(args []string) error {
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	namespace, args, err := inNamespace("let", args, nil)
	if err != nil {
		return err
	}
	if len(args) != 3 {
		return errors.New("want let [-n NAMESPACE] VARIABLE KIND/NAME PATH")
	}
	object, err := c.get(s.t.Context(), namespace, args[1])
	if err != nil {
		return err
	}
	if object == nil {
		return fmt.Errorf("there is no %s", args[1])
	}
	value, err := field(object, args[2])
	if err != nil {
		return err
	}
	s.set(args[0], value)
	return nil
}

func (s *scenario) count(args []string) (verdict, error) {
	c, err := s.theCluster()
	if err != nil {
		return verdict{}, err
	}
	namespace, selector := "", ""
	args, err = flags("count", args, func(f *flag.FlagSet) {
		f.StringVar(&namespace, "n", "", "")
		f.StringVar(&selector, "l", "", "")
	})
	if err != nil {
		return verdict{}, err
	}
	if len(args) != 2 {
		return verdict{}, errors.New("want count [-n NAMESPACE] [-l SELECTOR] KIND N")
	}
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return verdict{}, err
	}
	list, err := c.list(s.t.Context(), namespace, args[0], selector)
	if err != nil {
		return verdict{}, err
	}
	var names []string
	for _, object := range list {
		names = append(names, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
	}
	return verdict{holds: len(list) == want, saw: fmt.Sprintf("there are %d: %q", len(list), names)}, nil
}

// program runs a program of the script's PATH; =~ PATTERN at the end is what its
// stdout has to match.
func (s *scenario) program(args []string) (verdict, error) {
	var pattern *regexp.Regexp
	if n := len(args) - 2; n > 0 && args[n] == "=~" {
		var err error
		if pattern, err = regexp.Compile("(?m)" + args[n+1]); err != nil {
			return verdict{}, err
		}
		args = args[:n]
	}
	if len(args) == 0 {
		return verdict{}, errors.New("which program?")
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	// env finds the program in the script's PATH rather than in ours.
	cmd := exec.CommandContext(ctx, "env", args...)
	cmd.Dir = s.ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "KUBECONFIG", "WORK"} {
		cmd.Env = append(cmd.Env, name+"="+s.ts.Getenv(name))
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	v := verdict{printed: true, stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return v, fmt.Errorf("%s did not end within a minute", args[0])
	case errors.As(err, &exit):
		v.saw = fmt.Sprintf("%s: %s\n%s%s", strings.Join(args, " "), exit, v.stdout, v.stderr)
	case err != nil:
		return v, err
	default:
		v.holds = pattern == nil || pattern.MatchString(v.stdout)
		v.saw = fmt.Sprintf("%s succeeded and says\n%s", strings.Join(args, " "), v.stdout)
	}
	return v, nil
}

func (s *scenario) fileMatches(args []string) (verdict, error) {
	if len(args) != 2 {
		return verdict{}, errors.New("want output FILE PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	if err != nil {
		return verdict{}, err
	}
	content, err := os.ReadFile(s.ts.MkAbs(args[0]))
	if errors.Is(err, os.ErrNotExist) {
		return verdict{saw: "there is no file " + args[0]}, nil
	}
	return verdict{holds: pattern.Match(content), saw: fmt.Sprintf("%s reads\n%s", args[0], content)}, err
}

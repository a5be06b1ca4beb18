package test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubesync/kubesync/test/canary"
	"github.com/kubesync/kubesync/test/lab/apiproxy"
	"github.com/kubesync/kubesync/test/lab/build"
	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/gitserver"
	"github.com/kubesync/kubesync/test/lab/port"
)

// TestMain lets more scenarios run at once than there are processors, unless the
// caller says how many: most of their time is spent waiting.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("needs control planes")
	}
	t.Parallel()
	programs := buildPrograms(t)
	var suite canary.Totals
	t.Cleanup(func() { reportSearch(t, suite.String()) })
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Cmds:                commands(),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setup(env, programs, suite.Add) },
		Condition: func(name string) (bool, error) {
			if name == "race" {
				return race, nil
			}
			return false, fmt.Errorf("no such condition")
		},
	})
}

// searchReport is the variable that names a file for what TestScenarios has searched for
// secrets: what a passing test logs is shown with -v alone.
const searchReport = "SECRETS_REPORT"

func reportSearch(t *testing.T, text string) {
	t.Log(text)
	path := os.Getenv(searchReport)
	if path == "" {
		return
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Error(err)
	}
}

// buildPrograms returns a directory with kubesync, as its users get it, and
// kubectl.
func buildPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() // removed when the last scenario has ended
	options := []string{"-ldflags", "-X main.version=v0.0.0-test"}
	if race {
		options = append(options, "-race")
	}
	if err := build.Kubesync(t.Context(), dir, options...); err != nil {
		t.Fatal(err)
	}
	bin, err := cluster.FindBinaries(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin.Path("kubectl"), filepath.Join(dir, "kubectl")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// scenario is the state of one running script.
type scenario struct {
	t      testing.TB
	ts     *testscript.TestScript // of the command that runs
	work   string                 // $WORK
	config map[string]string      // kubesync's environment

	repos    map[string]*gitserver.Repo
	http     map[string]*gitserver.Server
	ssh      map[string]*gitserver.SSHServer
	web      map[string]*webServer
	proxies  map[string]*apiproxy.Proxy
	relays   map[string]*apiproxy.Relay
	webhooks map[string]*admission
	clusters map[string]*testCluster
	current  *testCluster
	daemons  map[string]*daemon
	waits    bool // for a condition to hold, in eventually
	secrets  canary.Secrets
	children []*canary.Children // of each daemon
	searched func(canary.Searched)
	runs     int // of kubesync in the foreground
	ports    []port.Port
	answers  int // to http
}

// key is under which a script's environment holds its scenario.
type key struct{}

// setup prepares a script's environment. The script's T is a testing.TB, since
// testscript.Run is given a testing.T.
func setup(env *testscript.Env, programs string, searched func(canary.Searched)) error {
	t, ok := env.T().(testing.TB)
	if !ok {
		return fmt.Errorf("testscript's T has changed: %T", env.T())
	}
	s := &scenario{
		t: t, work: env.WorkDir,
		config: map[string]string{"INTERVAL": "1s", "LISTEN": "off", "PROBE_LISTEN": "off"},
		repos:  map[string]*gitserver.Repo{}, http: map[string]*gitserver.Server{}, ssh: map[string]*gitserver.SSHServer{},
		web: map[string]*webServer{}, proxies: map[string]*apiproxy.Proxy{}, relays: map[string]*apiproxy.Relay{},
		webhooks: map[string]*admission{}, clusters: map[string]*testCluster{}, daemons: map[string]*daemon{},
		searched: searched,
	}
	upstream, err := filepath.Abs(filepath.Join("testdata", "upstream"))
	if err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	if err := s.secrets.AddManifests(env.WorkDir); err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	if race { // its programs would wait a second before they exit
		s.config["GORACE"] = "atexit_sleep_ms=50"
	}
	for _, dir := range []string{s.output(), s.home(), s.repoDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("scenario: %w", err)
		}
	}
	env.Values[key{}] = s
	env.Setenv("PATH", programs+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("HOME", s.home())
	env.Setenv("repos", s.repoDir())
	env.Setenv("upstream", upstream)
	env.Defer(s.end)
	return nil
}

// output is where all that kubesync prints is kept.
func (s *scenario) output() string { return filepath.Join(s.work, ".out") }

// home is the home directory of everything that a script runs.
func (s *scenario) home() string { return filepath.Join(s.work, ".home") }

// temporary is where everything that a script runs has its temporary files.
func (s *scenario) temporary() string { return filepath.Join(s.work, ".tmp") }

// repoDir is where the scenario's repositories are.
func (s *scenario) repoDir() string { return filepath.Join(s.work, ".repos") }

// end stops what the script has started and checks what no scenario may leave
// behind.
func (s *scenario) end() {
	for _, name := range slices.Sorted(maps.Keys(s.daemons)) {
		s.daemons[name].end(s.t)
	}
	s.scanAtEnd()
	for _, p := range s.proxies {
		p.Close()
	}
	for _, r := range s.relays {
		r.Close()
	}
	for _, a := range s.webhooks {
		a.close()
	}
	for _, c := range s.clusters {
		if err := c.Close(); err != nil {
			s.t.Error(err)
		}
	}
	for _, g := range s.http {
		if err := g.Close(); err != nil {
			s.t.Error(err)
		}
	}
	for _, g := range s.ssh {
		g.Close()
	}
	for _, w := range s.web {
		w.close()
	}
	for _, p := range s.ports {
		p.Release()
	}
}

// commands are the words that scripts may use besides testscript's own.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){}
	for name, run := range map[string]func(*scenario, []string) error{
		"cluster":     (*scenario).startCluster,
		"use":         (*scenario).useCluster,
		"apiserver":   (*scenario).apiServer,
		"apiproxy":    (*scenario).apiProxy,
		"etcd":        (*scenario).etcd,
		"token":       (*scenario).token,
		"webhook":     (*scenario).webhook,
		"account":     (*scenario).account,
		"user":        (*scenario).user,
		"gitserver":   (*scenario).gitServer,
		"web":         (*scenario).webServer,
		"port":        (*scenario).reservePorts,
		"repo":        (*scenario).repo,
		"commit":      (*scenario).commit,
		"git":         (*scenario).git,
		"config":      (*scenario).configure,
		"expand":      (*scenario).expand,
		"kubesync":    (*scenario).kubesync,
		"mark":        (*scenario).mark,
		"let":         (*scenario).let,
		"eventually":  (*scenario).eventually,
		"stays":       (*scenario).stays,
		"secret":      (*scenario).secret,
		"secret-scan": (*scenario).scanNow,
	} {
		all[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg {
				ts.Fatalf("! does not go with %s", name)
			}
			s := of(ts)
			switch name {
			case "eventually", "stays", "let", "mark":
			default:
				s.acts()
			}
			ts.Check(run(s, args))
		}
	}
	for name, look := range conditions() {
		if name == "exec" {
			continue // testscript has one
		}
		all[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			s := of(ts)
			if name == "kubectl" {
				s.acts()
			}
			verdict, err := look(s, args)
			s.print(verdict)
			ts.Check(err)
			if verdict.holds == neg {
				ts.Fatalf("%s", verdict.saw)
			}
		}
	}
	return all
}

// of returns the scenario of a script, ready to run a command.
func of(ts *testscript.TestScript) *scenario {
	s, ok := ts.Value(key{}).(*scenario)
	if !ok {
		ts.Fatalf("the script has no scenario")
	}
	s.ts = ts
	return s
}

// set sets a variable of the script. Characters that a name cannot hold become
// underscores.
func (s *scenario) set(name, value string) {
	s.ts.Setenv(strings.NewReplacer("-", "_", ".", "_").Replace(name), value)
}

// nameOr returns the only argument, or a default if there is none.
func nameOr(args []string, otherwise string) (string, error) {
	switch len(args) {
	case 0:
		return otherwise, nil
	case 1:
		return args[0], nil
	}
	return "", fmt.Errorf("too many arguments: %q", args)
}

// flags parses a command's flags and returns its arguments.
func flags(name string, args []string, define func(*flag.FlagSet)) ([]string, error) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	var usage strings.Builder
	set.SetOutput(&usage)
	define(set)
	if err := set.Parse(args); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, usage.String())
	}
	return set.Args(), nil
}

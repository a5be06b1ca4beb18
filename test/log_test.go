package test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// line is one line of a daemon's log.
type line struct {
	message string
	repo    string
	rev     string // short
	text    string // all of it, for patterns
	end     int64  // where in the log the next line begins
}

// mark makes what was logged until now invisible to the conditions.
func (s *scenario) mark([]string) error {
	for _, d := range s.daemons {
		d.seen = size(d.log)
	}
	for _, c := range s.clusters {
		c.seen = size(c.AuditLog())
	}
	return nil
}

// acts remembers what had been logged when the script did something.
func (s *scenario) acts() {
	for _, d := range s.daemons {
		d.before = size(d.log)
	}
}

// size of a file, 0 if there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// since returns the whole lines of a file from an offset on.
func since(path string, offset int64) ([]string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text := string(content[min(offset, int64(len(content))):])
	end := strings.LastIndex(text, "\n")
	if end < 0 {
		return nil, nil
	}
	return strings.Split(text[:end], "\n"), nil
}

// lines returns what the daemon has logged since the last mark.
func (d *daemon) lines() ([]line, error) {
	raw, err := since(d.log, d.seen)
	if err != nil {
		return nil, err
	}
	lines := make([]line, len(raw))
	end := d.seen
	for i, text := range raw {
		end += int64(len(text)) + 1
		lines[i] = parseLine(text)
		lines[i].end = end
	}
	return lines, nil
}

// parseLine makes a line of JSON readable: LEVEL MESSAGE key=value … Any other
// line stays as it is.
func parseLine(raw string) line {
	var fields map[string]any
	if json.Unmarshal([]byte(raw), &fields) != nil {
		return line{text: raw}
	}
	take := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	l := line{message: take("message"), repo: take("repo"), rev: take("revision")}
	words := []string{strings.ToUpper(take("level")), l.message}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch name {
		case "level", "message", "time":
		default:
			words = append(words, name+"="+readable(fields[name]))
		}
	}
	l.text = strings.Join(words, " ")
	return l
}

// readable prints a value of a log line, lists one item a line.
func readable(value any) string {
	items, isList := value.([]any)
	if !isList {
		return fmt.Sprint(value)
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = fmt.Sprint(item)
	}
	return strings.Join(texts, "\n")
}

// ofDaemon parses -d and returns the other arguments.
func (s *scenario) ofDaemon(name string, args []string) (*daemon, []string, error) {
	daemon := "daemon"
	args, err := flags(name, args, func(f *flag.FlagSet) { f.StringVar(&daemon, "d", daemon, "") })
	if err != nil {
		return nil, nil, err
	}
	d, err := s.theDaemon([]string{daemon})
	return d, args, err
}

func (s *scenario) logged(args []string) (verdict, error) {
	d, args, err := s.ofDaemon("log", args)
	if err != nil {
		return verdict{}, err
	}
	if len(args) != 1 {
		return verdict{}, errors.New("want log [-d DAEMON] PATTERN")
	}
	pattern, err := regexp.Compile("(?s)" + args[0])
	if err != nil {
		return verdict{}, err
	}
	lines, err := d.lines()
	if err != nil {
		return verdict{}, err
	}
	for _, l := range lines {
		if pattern.MatchString(l.text) {
			return verdict{holds: true, saw: "logged: " + l.text, printed: true, stdout: l.text + "\n"}, nil
		}
	}
	return verdict{saw: fmt.Sprintf("none of %d lines of the log matches", len(lines))}, nil
}

// lastSync holds if the last sync of a repo, as its daemon logged it, came to
// message. While the script waits, each sync since the script last did something was
// the last one for a moment, however short: a watch event may start another one at once.
func (s *scenario) lastSync(message string, args []string) (verdict, error) {
	d, args, err := s.ofDaemon(message, args)
	if err != nil {
		return verdict{}, err
	}
	if len(args) == 0 || len(args) > 2 {
		return verdict{}, errors.New("want [-d DAEMON] REPO [PATTERN]")
	}
	pattern, err := regexp.Compile("(?s)" + strings.Join(args[1:], ""))
	if err != nil {
		return verdict{}, err
	}
	lines, err := d.lines()
	if err != nil {
		return verdict{}, err
	}
	var v verdict
	for _, l := range slices.Backward(lines) {
		if l.repo != args[0] || !isSync(l.message) {
			continue
		}
		if v.saw == "" {
			v.saw = "the last sync: " + l.text
		}
		if l.message == message && pattern.MatchString(l.text) && (message == "sync failed" || s.isCheckedOut(args[0], l.rev)) {
			d.before = max(d.before, l.end)
			return verdict{holds: true, saw: "the sync: " + l.text}, nil
		}
		if !s.waits || l.end <= d.before {
			return v, nil
		}
	}
	if v.saw == "" {
		v.saw = "no sync of " + args[0] + " is in the log"
	}
	return v, nil
}

// isSync reports whether a message is about how a sync went.
func isSync(message string) bool {
	switch message {
	case "synced", "sync partial", "sync failed", "suspended":
		return true
	}
	return false
}

// isCheckedOut reports whether rev, of a log line, is what the work tree of a
// repository has. Repositories that the script did not make have any revision.
func (s *scenario) isCheckedOut(repo, rev string) bool {
	r := s.repos[repo]
	if r == nil {
		return rev != ""
	}
	head, err := r.Head()
	return err == nil && rev != "" && strings.HasPrefix(head, rev)
}

// audited looks for requests in the API server's audit log.
func (s *scenario) audited(args []string) (verdict, error) {
	c, err := s.theCluster()
	if err != nil {
		return verdict{}, err
	}
	except := ""
	args, err = flags("audit", args, func(f *flag.FlagSet) { f.StringVar(&except, "except", "", "") })
	if err != nil {
		return verdict{}, err
	}
	if len(args) != 1 {
		return verdict{}, errors.New("want audit [-except PATTERN] PATTERN")
	}
	pattern, err := regexp.Compile(args[0])
	if err != nil {
		return verdict{}, err
	}
	left, err := regexp.Compile(except)
	if err != nil {
		return verdict{}, err
	}
	raw, err := since(c.AuditLog(), c.seen)
	if err != nil {
		return verdict{}, err
	}
	var matches []string
	for _, text := range raw {
		request, err := auditLine(text)
		if err != nil {
			return verdict{}, err
		}
		if pattern.MatchString(request) && (except == "" || !left.MatchString(request)) {
			matches = append(matches, request)
		}
	}
	return verdict{
		holds:   len(matches) > 0,
		saw:     fmt.Sprintf("%d of %d requests match:\n%s", len(matches), len(raw), strings.Join(matches, "\n")),
		printed: true, stdout: strings.Join(append(matches, ""), "\n"),
	}, nil
}

// auditLine makes an audit event readable.
func auditLine(raw string) (string, error) {
	var event auditv1.Event
	if err := json.Unmarshal([]byte(raw), &event); err != nil {
		return "", fmt.Errorf("audit log: %w", err)
	}
	resource, name := event.RequestURI, ""
	if ref := event.ObjectRef; ref != nil {
		resource, name = ref.Resource, strings.Trim(ref.Namespace+"/"+ref.Name, "/")
		if ref.Subresource != "" {
			resource += "/" + ref.Subresource
		}
	}
	verb := event.Verb
	if strings.Contains(event.RequestURI, "dryRun=All") {
		verb = "dryrun-" + verb
	}
	as, status := "", int32(0)
	if event.ImpersonatedUser != nil {
		as = event.ImpersonatedUser.Username
	}
	if event.ResponseStatus != nil {
		status = event.ResponseStatus.Code
	}
	return fmt.Sprintf("%s %s %s %s as=%s %d %s", verb, resource, name, event.User.Username, as, status, event.UserAgent), nil
}

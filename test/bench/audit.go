package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	testlab "github.com/kubesync/kubesync/test/lab"
)

// request is one request that the API server answered, or, of a watch, began to.
type request struct {
	Stage      string
	AuditID    string
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  struct{ Resource, Subresource, APIGroup, Namespace, Name string }
}

// isEvent tells requests that tell of something, as a Kubernetes Event.
func (r request) isEvent() bool { return r.ObjectRef.Resource == "events" }

// isLease reports whether it is about the Lease that every daemon keeps.
func (r request) isLease() bool { return r.ObjectRef.Resource == "leases" }

// isWatch reports whether it is a watch, which costs nothing while nothing happens.
func (r request) isWatch() bool { return r.Verb == "watch" }

// isWrite reports whether it changes something.
func (r request) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!strings.Contains(r.RequestURI, "dryRun=")
}

// String is "patch configmaps team-1/settings".
func (r request) String() string {
	name := strings.Trim(r.ObjectRef.Namespace+"/"+r.ObjectRef.Name, "/")
	if r.ObjectRef.Resource == "" {
		name = r.RequestURI // discovery, for example
	}
	return strings.TrimSpace(r.Verb + " " + r.ObjectRef.Resource + " " + name)
}

// auditDelay is how long a request may take to reach the audit log after it was
// answered.
const auditDelay = 300 * time.Millisecond

// mark returns where the audit log ends now.
func (s *site) mark(ctx context.Context) (int64, error) {
	if err := testlab.Sleep(ctx, auditDelay); err != nil {
		return 0, err
	}
	info, err := os.Stat(s.AuditLog())
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	return info.Size(), nil
}

// requests returns what a user asked the API server since a mark.
func (s *site) requests(ctx context.Context, user string, mark int64) ([]request, error) {
	if err := testlab.Sleep(ctx, auditDelay); err != nil {
		return nil, err
	}
	file, err := os.Open(s.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var all []request
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if r.User.Username == user {
			all = append(all, r)
		}
	}
}

// serviceAccount is how the audit log calls one of ours.
func serviceAccount(name string) string { return "system:serviceaccount:kube-system:" + name }

// writes returns those that change something other than the Lease, and do not only tell
// of it.
func writes(requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return r.isLease() || r.isEvent() || !r.isWrite() })
}

// work returns all but watches and what the Lease needs.
func work(requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return r.isLease() || r.isWatch() })
}

// openWatches returns how many watches on each resource were begun and not ended.
func openWatches(requests []request) map[string]int {
	begun := map[string]string{}
	for _, r := range requests {
		switch {
		case !r.isWatch() || r.isLease():
		case r.Stage == "ResponseStarted":
			begun[r.AuditID] = r.ObjectRef.Resource
		default:
			delete(begun, r.AuditID)
		}
	}
	open := map[string]int{}
	for _, resource := range begun {
		open[resource]++
	}
	return open
}

// examples words some requests of many, the most frequent first.
func examples(requests []request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[strings.TrimSpace(r.Verb+" "+r.ObjectRef.Resource)]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var texts []string
	for _, kind := range kinds[:min(len(kinds), 4)] {
		texts = append(texts, fmt.Sprintf("%d × %s", counts[kind], kind))
	}
	if len(kinds) > len(texts) {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}

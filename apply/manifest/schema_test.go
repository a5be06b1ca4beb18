package manifest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/internal/limits"
)

// Without a cluster it is known which kinds the API groups of Kubernetes have, and
// nothing of others.
func TestServedNowhere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ apiVersion, kind, want string }{
		"served":                    {"apps/v1", "Deployment", ""},
		"no such kind":              {"apps/v1", "Deploymnt", "Kubernetes 1.36 has no kind Deploymnt in apps/v1; it has ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet there"},
		"of another version":        {"batch/v2", "CronJob", "Kubernetes 1.36 has no kind CronJob in batch/v2: write apiVersion: batch/v1"},
		"no such version":           {"batch/v2", "CronJobs", "Kubernetes 1.36 has no kind CronJobs in batch/v2; of that group it has batch/v1"},
		"without its group":         {"v1", "Deploymnt", "Kubernetes 1.36 has no kind Deploymnt in v1; it has Binding, "},
		"removed":                   {"policy/v1beta1", "PodDisruptionBudget", "Kubernetes 1.25 removed PodDisruptionBudget of policy/v1beta1: write apiVersion: policy/v1"},
		"removed, nothing in place": {"events.k8s.io/v1beta1", "Event", "Kubernetes 1.25 removed Event of events.k8s.io/v1beta1"},
		"removed and forgotten":     {"policy/v1beta1", "PodSecurityPolicy", "Kubernetes 1.36 has no kind PodSecurityPolicy in policy/v1beta1; of that group it has policy/v1"},
		"a group that is gone":      {"extensions/v1beta1", "PodSecurityPolicy", "Kubernetes 1.36 has no kind PodSecurityPolicy in extensions/v1beta1, and nothing of that group any more"},
		"not served by default":     {"certificates.k8s.io/v1beta1", "ClusterTrustBundle", ""},
		"of others":                 {"gateway.networking.k8s.io/v1", "Gatewy", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checked, err := Check(objectsOf(t, bare(test.apiVersion, test.kind, "", "x")), Rules{Schemas: openapi.Builtin()})
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "m.yaml:1: "+test.kind+"/x: ")
			}
			if test.want == "" && got != "" && !strings.Contains(got, "is required") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s (%+v)", got, test.want, checked)
			}
		})
	}
}

// A problem is at its field's line, or at the nearest that is known.
func TestLocate(t *testing.T) {
	t.Parallel()
	const text = `# comment
---
# another
kind: A
spec:
  list:
  - name: a
  -
    name: b
    value: {x: y,
      z: w}
  more: *alias
---
items:
- kind: B
  spec: {a: b}
- kind: C
  spec:
    text: |
      a
      b
    last: 1
`
	for name, test := range map[string]struct {
		line  int
		field openapi.Path
		want  int
	}{
		"a field":                {4, openapi.Path{"spec"}, 5},
		"of an item":             {4, openapi.Path{"spec", "list", 1, "name"}, 9},
		"in braces":              {4, openapi.Path{"spec", "list", 1, "value", "z"}, 11},
		"an item":                {4, openapi.Path{"spec", "list", 0}, 7},
		"a field that is absent": {4, openapi.Path{"spec", "list", 1, "nosuch"}, 9},
		"an item that is absent": {4, openapi.Path{"spec", "list", 7, "name"}, 7},
		"an object of a list":    {17, openapi.Path{"spec", "last"}, 22},
		"no such object":         {3, openapi.Path{"spec"}, 3},
		"no field":               {4, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := Problems{{Origin: Origin{File: "f.yaml", Line: test.line}, Field: test.field}}
			files := fstest.MapFS{"f.yaml": {Data: []byte(strings.ReplaceAll(text, "*alias", "x"))}}
			Locate(files, problems, limits.Limits{})
			if got := problems[0].Origin.Line; got != test.want {
				t.Errorf("line %d, want %d", got, test.want)
			}
		})
	}
	problems := Problems{{Origin: Origin{File: "gone.yaml", Line: 3}, Field: openapi.Path{"spec"}}}
	if Locate(fstest.MapFS{}, problems, limits.Limits{}); problems[0].Origin.Line != 3 {
		t.Errorf("a file that cannot be read: line %d", problems[0].Origin.Line)
	}
}

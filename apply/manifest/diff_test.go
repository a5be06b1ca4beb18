package manifest

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubesync/kubesync/test/golden"
)

// state reads one state of an object; nil for no text.
func state(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	return objectsOf(t, text)[0].Tree()
}

const liveSecret = `apiVersion: v1
kind: Secret
metadata:
  name: s
  namespace: team
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data":{"same":"c2FtZS1zZWNyZXQ="}}'
    copy: it is old-secret
    encoded: b2xkLXNlY3JldA==
    note: harmless
data:
  same: c2FtZS1zZWNyZXQ=
  changed: b2xkLXNlY3JldA==
  removed: Z29uZS1zZWNyZXQ=
type: Opaque
`

const nextSecret = `apiVersion: v1
kind: Secret
metadata:
  name: s
  namespace: team
  annotations:
    copy: it is new-secret
    note: still harmless
data:
  same: c2FtZS1zZWNyZXQ=
  changed: bmV3LXNlY3JldA==
  added: YWRkZWQtc2VjcmV0
stringData:
  plain: plain-secret
type: Opaque
`

// The diffs are kept in testdata/diff: what a person reads in a dry run.
func TestDiff(t *testing.T) {
	t.Parallel()
	const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: team
  uid: 6f3a
  resourceVersion: "7"
  generation: 2
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: web, applyset.kubernetes.io/part-of: applyset-x-v1}
  managedFields: [{manager: kubesync}]
spec:
  replicas: 1
  template: {spec: {containers: [{name: web, image: web:1}]}}
status: {replicas: 1}
`
	const bare = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: team}\n"
	for name, test := range map[string]struct{ live, next string }{
		"changed": {deployment, strings.NewReplacer("web:1", "web:2", "generation: 2", "generation: 3", `"7"`, `"8"`,
			"status: {replicas: 1}", "status: {}").Replace(deployment)},
		"created":        {"", strings.ReplaceAll(deployment, "spec:\n", "spec:\n  paused: false\n")},
		"deleted":        {deployment, ""},
		"secret":         {liveSecret, nextSecret},
		"secret-created": {"", nextSecret},
		"secret-deleted": {liveSecret, ""},
		"unchanged":      {deployment, strings.NewReplacer("generation: 2", "generation: 9", "x-v1", "y-v1", "status: {replicas: 1}", "").Replace(deployment)},
		"label-only":     {bare, strings.Replace(bare, "name: c", "labels: {applyset.kubernetes.io/part-of: x}, name: c", 1)},
		"nothing":        {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, next := state(t, test.live), state(t, test.next)
			before := []string{toYAML(live), toYAML(next)}
			got := Diff(live, next)
			golden.Check(t, filepath.Join("testdata", "diff", name+".diff"), got)
			shown := []string{got}
			if next != nil {
				shown = append(shown, YAML(objectsOf(t, test.next)[0]))
			}
			for _, text := range shown {
				for _, secret := range []string{"-secret", "c2FtZ", "b2xkL", "Z29uZ", "bmV3L", "YWRkZ"} {
					if strings.Contains(text, secret) {
						t.Errorf("%q is shown in:\n%s", secret, text)
					}
				}
			}
			if after := []string{toYAML(live), toYAML(next)}; after[0] != before[0] || after[1] != before[1] {
				t.Error("Diff changed what it was given")
			}
		})
	}
}

func TestYAML(t *testing.T) {
	t.Parallel()
	golden.Check(t, filepath.Join("testdata", "diff", "manifest-secret.yaml"), YAML(objectsOf(t, nextSecret)[0]))
}

// Whatever a Secret looks like, its values are not shown.
func TestMaskSecret(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"data is text":         {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: hunter2\n", "data: '***'"},
		"data is a list":       {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: [hunter2]\n", "data: '***'"},
		"a value is a mapping": {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: {b: hunter2}}\n", "a: '***'"},
		"a value is a number":  {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 5432}\n", "a: '***'"},
		"no data":              {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", "name: s"},
		"another kind":         {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {a: b}\n", "a: b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := toYAML(MaskSecret(state(t, test.text)))
			if !strings.Contains(got, test.want) || strings.Contains(got, "hunter2") || strings.Contains(got, "5432") {
				t.Errorf("got:\n%s\nwant %q in it", got, test.want)
			}
		})
	}
	if MaskSecret(nil) != nil {
		t.Error("nothing became something")
	}
}

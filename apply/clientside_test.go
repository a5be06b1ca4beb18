package apply_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubesync/kubesync/apply"
)

// What the API server says in Go's words is reported in those of an author of YAML.
func testTyping(t *testing.T, w world) {
	ns := w.namespace(t, "typing")
	r := w.newRepo(t, "typing")
	pod := func(fields string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: typing}, spec: {containers: [{name: c, image: i, %s}]}}", fields)
	}
	spec := func(fields string) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: typing}, spec: {selector: {matchLabels: {a: b}}, "+
			"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}, %s}}", fields)
	}
	data := func(value string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: %s}, data: {a: %s}}", ns, value)
	}
	container := `.spec.containers[name="c"]`
	for _, test := range []struct{ manifest, want string }{
		{data("123"), ".data.a: must be a string, not a number, put it in quotes"},
		{data("1.5"), ".data.a: must be a string, not a number, put it in quotes"},
		{data("true"), ".data.a: must be a string, not a boolean, put it in quotes"},
		{data("[x]"), ".data.a: must be a string, not a list"},
		{data("{b: c}"), ".data.a: must be a string, not a mapping"},
		{spec("replicas: '3'"), ".spec.replicas: must be a number, not a string, which is what stands in quotes"},
		{spec("replicas: true"), ".spec.replicas: must be a number, not a boolean"},
		{spec("replicas: [1]"), ".spec.replicas: must be a number, not a list"},
		{spec("replicas: {a: 1}"), ".spec.replicas: must be a number, not a mapping"},
		{spec("replicas: 1.5"), "a value does not fit its field: cannot convert float64 to int32"},
		{spec("paused: 'true'"), ".spec.paused: must be a boolean, not a string, which is what stands in quotes"},
		{spec("paused: 1"), ".spec.paused: must be a boolean, not a single value"},
		{spec("strategy: Recreate"), ".spec.strategy: must be a mapping, not a single value"},
		{spec("strategy: [Recreate]"), ".spec.strategy: must be a mapping, not a list"},
		{spec(`strategy: "a\nb}\n  .c: d"`), ".spec.strategy: must be a mapping, not a single value"},
		{spec("nosuch: 1"), ".spec.nosuch: field not declared in schema"},
		{pod("env: {A: b}"), container + ".env: must be a list, not a mapping"},
		{pod("command: sh"), container + ".command: must be a list, not a single value"},
		{pod("resources: {limits: {cpu: [1]}}"), container + ".resources.limits.cpu: must be a single value, not a list"},
		{pod("resources: {limits: {cpu: lots}}"), "a value does not fit its field: quantities must match the regular expression"},
		{pod("volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]"), container + `.volumeMounts: duplicate entries for key [mountPath="/a"]`},
		{pod("env: [{name: A, value: 1}, {name: B, value: true}]"), "errors:\n  " + container + `.env[name="A"].value: must be a string, not a number, put it in quotes` +
			"\n  " + container + `.env[name="B"].value: must be a string, not a boolean, put it in quotes`},
	} {
		for _, outcome := range r.sync(test.manifest).Outcomes {
			if outcome.Action != apply.Failed || !strings.HasPrefix(outcome.Err.Error(), "manifest error: "+test.want) || strings.Contains(outcome.Err.Error(), "got ") {
				t.Errorf("%s\n%s: %v\nwant: %s", test.manifest, outcome.Action, outcome.Err, test.want)
			}
		}
	}
}

// Server-side apply refuses what client-side apply took: ports that stand twice, and
// null where a custom resource's schema wants something. Null that the schema allows
// is what git says.
func testClientSideApply(t *testing.T, w world) {
	ns := w.namespace(t, "clientside")
	r := w.newRepo(t, "clientside")
	repeated := strings.Replace(deployment(ns, "web:1", "web"), "image: ", "ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP, name: http}], image: ", 1)
	r.want(r.sync(repeated), "created Deployment/clientside/web")
	live, err := w.typed.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ports := live.Spec.Template.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].Name != "http" {
		t.Errorf("ports %v", ports)
	}

	kind := strings.Replace(fmt.Sprintf(crd, "nullable", "nulls.test", "Nullable"), "x-kubernetes-preserve-unknown-fields: true",
		"properties: {size: {type: integer}, o: {type: object}, m: {type: object, additionalProperties: {type: string}}, "+
			"l: {type: array, items: {type: object, properties: {a: {type: string}}}}, allowed: {type: string, nullable: true}, "+
			"values: {type: object, x-kubernetes-preserve-unknown-fields: true}}", 1)
	r.want(r.sync(kind, repeated), "created CustomResourceDefinition/nullables.nulls.test", "unchanged Deployment/clientside/web")
	null := "{apiVersion: nulls.test/v1, kind: Nullable, metadata: {name: one, namespace: clientside}, spec: " +
		"{size: 1, o: null, m: {a.b: null}, l: [{a: null}], allowed: null, values: {default: null}}}"
	result := r.sync(kind, repeated, null)
	r.want(result, "unchanged CustomResourceDefinition/nullables.nulls.test", "unchanged Deployment/clientside/web", "created Nullable/clientside/one")
	want := "left out, since they are null and may not be: spec.l[0].a, spec.m.a.b, spec.o"
	if got := outcome(t, result, "Nullable/clientside/one").Warnings; len(got) != 1 || got[0] != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
	one, err := dynamic.NewForConfigOrDie(w.config).Resource(schema.GroupVersionResource{Group: "nulls.test", Version: "v1", Resource: "nullables"}).
		Namespace(ns).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(one.Object["spec"]); got != "map[allowed:<nil> l:[map[]] m:map[] size:1 values:map[default:<nil>]]" {
		t.Errorf("spec %s", got)
	}
	// The rest is judged as it stands, and nothing is sent again that is as it was sent.
	r.want(r.sync(kind, repeated, null), "unchanged CustomResourceDefinition/nullables.nulls.test", "unchanged Deployment/clientside/web", "unchanged Nullable/clientside/one")
	result = r.sync(kind, repeated, strings.Replace(null, "l: [{a: null}]", "l: [null]", 1))
	if failed := outcome(t, result, "Nullable/clientside/one"); failed.Action != apply.Failed || !strings.Contains(failed.Err.Error(), `spec.l[0]: Invalid value: "null"`) {
		t.Errorf("an item that is null: %s %v", failed.Action, failed.Err)
	}
}

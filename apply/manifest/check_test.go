package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/internal/limits"
)

// objectsOf reads manifests that must be valid as such.
func objectsOf(t testing.TB, text string) []Object {
	t.Helper()
	loaded, err := NewLoader(limits.Limits{}).Load(manifests("m.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Objects
}

// verdict tells what Check found, a line each.
func verdict(checked Checked, err error) string {
	var b strings.Builder
	for _, o := range checked.Objects {
		fmt.Fprintf(&b, "object %s\n", o.ID())
	}
	for _, p := range checked.Unserved {
		fmt.Fprintf(&b, "pending %s %s: %s\n", p.Origin, p.ID(), p.Reason)
	}
	for _, w := range checked.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	var problems Problems
	errors.As(err, &problems)
	for _, p := range problems {
		word := "problem"
		if p.Refused {
			word = "refused"
		}
		fmt.Fprintf(&b, "%s %s\n", word, p)
	}
	return b.String()
}

// bare is a manifest of nothing but its identity.
func bare(apiVersion, kind, namespace, name string) string {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", apiVersion, kind, name)
	if namespace != "" {
		text += "  namespace: " + namespace + "\n"
	}
	return text + "---\n"
}

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: %s
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}}
  - {name: v1beta1, served: false}
  - {name: v1alpha1, served: true}
---
`

func TestCheck(t *testing.T) {
	t.Parallel()
	isSystem := func(name string) bool { return name == "kube-system" }
	for name, test := range map[string]struct {
		text  string
		rules Rules
		want  string
	}{
		"default namespace": {
			bare("v1", "ConfigMap", "", "a") + bare("v1", "ConfigMap", "x", "b"), Rules{},
			"object ConfigMap/default/a\nobject ConfigMap/x/b\n"},
		"the repo's namespace": {
			bare("v1", "ConfigMap", "", "a") + bare("v1", "Namespace", "", "team"), Rules{Namespace: "team"},
			"object ConfigMap/team/a\nobject Namespace/team\n"},
		"cluster-scoped with a namespace": {
			bare("rbac.authorization.k8s.io/v1", "ClusterRole", "x", "r"), Rules{},
			"object ClusterRole/r\nwarning m.yaml:1: ClusterRole/r: metadata.namespace x is ignored: objects of this kind belong to no namespace\n"},
		"twice": {
			bare("v1", "ConfigMap", "", "a") + bare("v1", "ConfigMap", "default", "a"), Rules{},
			"object ConfigMap/default/a\nproblem m.yaml:6: ConfigMap/a: declared twice: ConfigMap/default/a is also at m.yaml:1\n"},
		"twice, in two versions": {
			bare("autoscaling/v1", "HorizontalPodAutoscaler", "", "a") + bare("autoscaling/v2", "HorizontalPodAutoscaler", "", "a"), Rules{},
			"object HorizontalPodAutoscaler/default/a\nproblem m.yaml:6: HorizontalPodAutoscaler/a: declared twice: HorizontalPodAutoscaler/default/a is also at m.yaml:1\n"},
		"same name, other group": {
			bare("extensions/v1beta1", "Ingress", "", "a") + bare("networking.k8s.io/v1", "Ingress", "", "a"), Rules{},
			"object Ingress/default/a\nobject Ingress/default/a\n"},

		"unknown kind": {
			bare("example.com/v1", "Widget", "", "w") + bare("v1", "ConfigMap", "", "a"), Rules{},
			"object ConfigMap/default/a\npending m.yaml:1 Widget/w: waits for its kind: the cluster does not serve Widget of example.com/v1, and no CustomResourceDefinition of this repo defines it\n"},
		"kind of a CRD beside it, which follows": {
			bare("example.com/v1", "Widget", "", "w") + fmt.Sprintf(widgets, "Namespaced"), Rules{Namespace: "n"},
			"object Widget/n/w\nobject CustomResourceDefinition/widgets.example.com\n"},
		"cluster-scoped kind of a CRD": {
			fmt.Sprintf(widgets, "Cluster") + bare("example.com/v1", "Widget", "", "w"), Rules{Namespace: "n"},
			"object CustomResourceDefinition/widgets.example.com\nobject Widget/w\n"},
		"version that the CRD does not serve": {
			fmt.Sprintf(widgets, "Namespaced") + bare("example.com/v1beta1", "Widget", "", "w"), Rules{},
			"object CustomResourceDefinition/widgets.example.com\npending m.yaml:13 Widget/w: waits for its kind: the cluster does not serve Widget of example.com/v1beta1, and the CustomResourceDefinition at m.yaml:1 does not serve that version\n"},
		"the cluster knows better than the CRD": {
			fmt.Sprintf(widgets, "Cluster") + bare("example.com/v1", "Widget", "", "w"),
			Rules{Scope: func(schema.GroupVersionKind) Scope { return ScopeNamespaced }, Namespace: "n"},
			"object CustomResourceDefinition/n/widgets.example.com\nobject Widget/n/w\n"},

		"allowed namespaces": {
			bare("v1", "ConfigMap", "a", "x") + bare("v1", "ConfigMap", "b", "x") + bare("v1", "Namespace", "", "a") + bare("v1", "Namespace", "", "c") +
				bare("v1", "PersistentVolume", "", "v") + bare("example.com/v1", "Widget", "", "w") + bare("example.com/v1", "Widget", "c", "w"),
			Rules{Namespaces: [][]string{nil, {"a", "b"}, {"a", "z"}}},
			"object ConfigMap/a/x\nobject Namespace/a\n" +
				"pending m.yaml:28 Widget/w: waits for its kind: the cluster does not serve Widget of example.com/v1, and no CustomResourceDefinition of this repo defines it\n" +
				"refused m.yaml:7: ConfigMap/x: namespace b is not among the allowed namespaces (a, z)\n" +
				"refused m.yaml:18: Namespace/c: namespace c is not among the allowed namespaces (a, b)\n" +
				"refused m.yaml:18: Namespace/c: namespace c is not among the allowed namespaces (a, z)\n" +
				"refused m.yaml:23: PersistentVolume/v: a cluster-scoped object, where only objects in the allowed namespaces (a, b) and these Namespaces themselves may be written\n" +
				"refused m.yaml:23: PersistentVolume/v: a cluster-scoped object, where only objects in the allowed namespaces (a, z) and these Namespaces themselves may be written\n" +
				"refused m.yaml:33: Widget/w: namespace c is not among the allowed namespaces (a, b)\n" +
				"refused m.yaml:33: Widget/w: namespace c is not among the allowed namespaces (a, z)\n"},
		"no namespace is allowed": {
			bare("v1", "ConfigMap", "a", "x"), Rules{Namespaces: [][]string{{}}},
			"refused m.yaml:1: ConfigMap/x: namespace a is not among the allowed namespaces ()\n"},

		"application: allowed": {
			bare("v1", "ConfigMap", "a", "x") + bare("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "other") + bare("example.com/v1", "kubesync", "a", "kubesync"),
			Rules{Tier: Application, SystemNamespace: isSystem},
			"object ConfigMap/a/x\nobject RoleBinding/a/other\npending m.yaml:13 kubesync/a/kubesync: waits for its kind: the cluster does not serve kubesync of example.com/v1, and no CustomResourceDefinition of this repo defines it\n"},
		"application: refused": {
			bare("v1", "ConfigMap", "kube-system", "x") + bare("v1", "Namespace", "", "a") + bare("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "kubesync") +
				bare("example.com/v1", "Widget", "kube-system", "w"),
			Rules{Tier: Application, SystemNamespace: isSystem},
			"refused m.yaml:1: ConfigMap/x: Unprivileged repo requires privilege: object in system namespace kube-system: declare it in a system repo, or make this repo one (privileged: true in its CONFIG entry; TIER=system for REPO)\n" +
				"refused m.yaml:7: Namespace/a: Unprivileged repo requires privilege: cluster-scoped object: declare it in a system repo, or make this repo one (privileged: true in its CONFIG entry; TIER=system for REPO)\n" +
				"refused m.yaml:12: RoleBinding/kubesync: Unprivileged repo requires privilege: the RoleBinding kubesync is kubesync's own\n" +
				"refused m.yaml:18: Widget/w: Unprivileged repo requires privilege: object in system namespace kube-system: declare it in a system repo, or make this repo one (privileged: true in its CONFIG entry; TIER=system for REPO)\n"},
		"application: the pod's namespace": {
			bare("v1", "ConfigMap", "", "x") + bare("v1", "ConfigMap", "kube-system", "z"),
			Rules{Tier: Application, SystemNamespace: isSystem, Namespace: "kube-system", NamespaceFromPod: true},
			"refused m.yaml:1: ConfigMap/x: Unprivileged repo requires privilege: object in system namespace kube-system, where it goes because neither it nor the repo's configuration names a namespace: name one\n" +
				"refused m.yaml:6: ConfigMap/z: Unprivileged repo requires privilege: object in system namespace kube-system: declare it in a system repo, or make this repo one (privileged: true in its CONFIG entry; TIER=system for REPO)\n"},
		"application: a RoleBinding in the pod's namespace": {
			bare("rbac.authorization.k8s.io/v1", "RoleBinding", "", "kubesync"),
			Rules{Tier: Application, SystemNamespace: isSystem, Namespace: "kube-system", NamespaceFromPod: true},
			"refused m.yaml:1: RoleBinding/kubesync: Unprivileged repo requires privilege: object in system namespace kube-system, where it goes because neither it nor the repo's configuration names a namespace: name one\n" +
				"refused m.yaml:1: RoleBinding/kubesync: Unprivileged repo requires privilege: the RoleBinding kubesync is kubesync's own\n"},
		"system: everything": {
			bare("v1", "ConfigMap", "kube-system", "x") + bare("v1", "Namespace", "", "a") + bare("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "kubesync"),
			Rules{SystemNamespace: isSystem},
			"object ConfigMap/kube-system/x\nobject Namespace/a\nobject RoleBinding/a/kubesync\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := verdict(Check(objectsOf(t, test.text), test.rules)); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// podOf puts a pod spec where a kind has it.
func podOf(kind, spec string) string {
	apiVersion, before := "v1", "spec: "
	switch kind {
	case "PodTemplate":
		before = "template: {spec: "
	case "ReplicationController":
		before = "spec: {template: {spec: "
	case "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet":
		apiVersion, before = "apps/v1", "spec: {template: {spec: "
	case "Job":
		apiVersion, before = "batch/v1", "spec: {template: {spec: "
	case "CronJob":
		apiVersion, before = "batch/v1", "spec: {jobTemplate: {spec: {template: {spec: "
	}
	after := strings.Repeat("}", strings.Count(before, "{"))
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: p, namespace: a}\n%s%s%s\n", apiVersion, kind, before, spec, after)
}

func podKinds() []string {
	return []string{"Pod", "PodTemplate", "ReplicationController", "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob"}
}

// Every kind that makes pods is held against Pod Security's level baseline.
func TestGateKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range podKinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rules := Rules{Tier: Application}
			if _, err := Check(objectsOf(t, podOf(kind, "{containers: [{name: c, image: i}]}")), rules); err != nil {
				t.Errorf("a harmless pod is refused: %v", err)
			}
			_, err := Check(objectsOf(t, podOf(kind, "{hostNetwork: true, containers: [{name: c, image: i, securityContext: {privileged: true}}]}")), rules)
			want := "m.yaml:1: " + kind + `/p: Unprivileged repo requires privilege: host namespaces (hostNetwork=true), privileged (container "c" must not set securityContext.privileged=true)`
			if err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
			for name, spec := range map[string]string{"no spec": "null", "wrong type": "[]", "wrong type inside": "{containers: [{name: c, image: i}], hostNetwork: 'yes'}"} {
				_, err := Check(objectsOf(t, podOf(kind, spec)), rules)
				if err == nil || !strings.Contains(err.Error(), refusal+"its pod template cannot be checked") {
					t.Errorf("%s: got %v", name, err)
				}
			}
			_, err = Check(objectsOf(t, podOf(kind, "{containers: [{name: c, env: [{name: PIN, value: 271828}]}]}")), rules)
			if err == nil || !strings.HasSuffix(err.Error(), "spec.containers.env.value holds number where string belongs") {
				t.Errorf("a variable that is a number: got %v", err)
			}
			if _, err := Check(objectsOf(t, podOf(kind, "{hostNetwork: true}")), Rules{}); err != nil {
				t.Errorf("a system repo is refused a pod: %v", err)
			}
		})
	}
}

// What each of baseline's checks refuses, and how the refusal says it.
func TestGatePods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, want string }{
		"hostPID":      {"{hostPID: true, containers: [{name: c}]}", "host namespaces (hostPID=true)"},
		"hostIPC":      {"{hostIPC: true, containers: [{name: c}]}", "host namespaces (hostIPC=true)"},
		"hostPath":     {"{containers: [{name: c}], volumes: [{name: v, hostPath: {path: /}}]}", `hostPath volumes (volume "v")`},
		"hostPort":     {"{containers: [{name: c, ports: [{containerPort: 1, hostPort: 80}]}]}", `hostPort (container "c" uses hostPort 80)`},
		"capabilities": {"{containers: [{name: c, securityContext: {capabilities: {add: [NET_ADMIN]}}}]}", `non-default capabilities (container "c" must not include "NET_ADMIN" in securityContext.capabilities.add)`},
		"init":         {"{initContainers: [{name: i, securityContext: {privileged: true}}], containers: [{name: c}]}", `privileged (container "i" must not set securityContext.privileged=true)`},
		"ephemeral":    {"{ephemeralContainers: [{name: e, securityContext: {privileged: true}}], containers: [{name: c}]}", `privileged (container "e" must not set securityContext.privileged=true)`},
		"seccomp":      {"{securityContext: {seccompProfile: {type: Unconfined}}, containers: [{name: c}]}", `seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")`},
		"procMount":    {"{containers: [{name: c, securityContext: {procMount: Unmasked}}]}", `procMount (container "c" must not set securityContext.procMount to "Unmasked")`},
		"sysctls":      {"{securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}, containers: [{name: c}]}", "forbidden sysctls (kernel.msgmax)"},
		"selinux":      {"{securityContext: {seLinuxOptions: {user: u}}, containers: [{name: c}]}", `seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: user may not be set)`},
		"probe host":   {"{containers: [{name: c, livenessProbe: {httpGet: {host: h, port: 1}}}]}", `probe or lifecycle host (container "c" uses probe or lifecycle host "h")`},
		"windows":      {"{securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: c}]}", `hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Check(objectsOf(t, podOf("Pod", test.spec)), Rules{Tier: Application})
			if want := "m.yaml:1: Pod/p: " + refusal + test.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// The gate looks at what is sent: what an object leaves out does no harm.
func TestGateLooksAtWhatIsSent(t *testing.T) {
	t.Parallel()
	text := strings.Replace(podOf("Deployment", "{hostNetwork: true, containers: [{name: c}]}"),
		"namespace: a", "namespace: a, annotations: {kubesync.io/ignore: spec.template.spec.hostNetwork}", 1)
	checked, err := Check(objectsOf(t, text), Rules{Tier: Application})
	if err != nil {
		t.Fatal(err)
	}
	if spec := MapAt(checked.Objects[0].Tree().Object, "spec", "template", "spec"); spec["hostNetwork"] != nil {
		t.Errorf("hostNetwork would be sent: %v", spec)
	}
}

// The path table must know every kind of Kubernetes that holds a pod template.
func TestPodTemplateKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range podKinds() {
		o := objectsOf(t, podOf(kind, "{}"))[0]
		if PodTemplate(o.Tree().Object, o.ID().GroupKind()) == nil {
			t.Errorf("%s: no pod template found", kind)
		}
	}
	var found []string
	for line := range strings.Lines(builtinKinds) {
		if fields := strings.Fields(line); len(fields) > 1 {
			kind := schema.FromAPIVersionAndKind(fields[0], fields[1]).GroupKind()
			if _, has := PodTemplatePath(kind); has && !slices.Contains(found, kind.Kind) {
				found = append(found, kind.Kind)
			}
		}
	}
	slices.Sort(found)
	if want := podKinds(); len(found) != len(want) {
		t.Errorf("kinds with pod templates: %v, want %v", found, want)
	}
}

// Objects that Load remembers are used again at the next sync: Check may not
// change them.
func TestCheckChangesCopies(t *testing.T) {
	t.Parallel()
	text := `apiVersion: v1
kind: Secret
metadata: {name: s, uid: x, labels: {applyset.kubernetes.io/part-of: other}, annotations: {kubesync.io/ignore: data.b}}
data: {b: eA==}
stringData: {a: b}
---
` + podOf("Pod", "{containers: [{name: c, env: [{name: A, value: x}, {name: A, value: y}]}]}")
	objects := objectsOf(t, text)
	before := make([]string, len(objects))
	for i, o := range objects {
		before[i] = toYAML(o.Tree())
	}
	first, err := Check(objects, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	second, _ := Check(objects, Rules{})
	for i, o := range objects {
		if after := toYAML(o.Tree()); after != before[i] {
			t.Errorf("Check changed what Load remembers:\n%s\nwas\n%s", after, before[i])
		}
		if toYAML(first.Objects[i].Tree()) != toYAML(second.Objects[i].Tree()) {
			t.Error("a second Check differs from the first")
		}
	}
}

func TestParseTier(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Tier{"system": System, "Application": Application, " application ": Application} {
		if got, err := ParseTier(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	if _, err := ParseTier("root"); err == nil || !strings.Contains(err.Error(), "system and application are") {
		t.Errorf("got %v", err)
	}
}

// Kinds that are mere requests are refused, served or not they leave nothing behind.
func TestCheckRefusesRequests(t *testing.T) {
	t.Parallel()
	objects := objectsOf(t, "{apiVersion: v1, kind: Binding, metadata: {name: x}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n")
	_, err := Check(objects, Rules{Lasting: func(gvk schema.GroupVersionKind) bool { return gvk.Kind != "Binding" }})
	const want = "m.yaml:1: Binding/x: objects of kind Binding of v1 cannot be declared: the API server does not let them be listed, watched and deleted"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

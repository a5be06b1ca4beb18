package deploy_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubesync/kubesync/test/lab/build"
	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

const chart = "chart/kubesync"

// helm is a pinned Helm, with settings of its own.
type helm struct {
	program string
	env     []string
}

// newHelm builds Helm unless that was done before.
func newHelm(t *testing.T, env ...string) helm {
	t.Helper()
	if testing.Short() {
		t.Skip("Helm takes minutes to build")
	}
	build := exec.CommandContext(t.Context(), filepath.Join("..", "scripts", "tool"), "helm")
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	// A file that a test looks at is part of what its cached result stands for.
	err = filepath.WalkDir(chart, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return helm{strings.TrimSpace(string(out)), append(env, "HOME="+t.TempDir())}
}

func (h helm) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), h.program, args...)
	command.Env = append(os.Environ(), h.env...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// run runs helm and returns what it prints.
func (h helm) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.try(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Of every way to put the folders of deploy/ together, the chart has the same objects,
// field by field, once the labels of Helm are left out.
func TestChartEqualsTheManifests(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	h.run(t, "lint", "--strict", chart)
	settings := map[string]string{
		"restricted":  "tier=application",
		"hostnetwork": "hostNetwork=true",
		"monitoring":  "monitoring.enabled=true",
	}
	for name, v := range variants() {
		if v.resource != "base" {
			continue // its names are those of an example
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"template", "kubesync", chart, "--namespace", "kube-system"}
			for _, component := range v.components {
				args = append(args, "--set", settings[component])
			}
			got := objects(t, h.run(t, args...))
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay(t, v))
			if err != nil {
				t.Fatal(err)
			}
			manifests, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			want := objects(t, string(manifests))
			for _, id := range slices.Sorted(maps.Keys(got)) {
				withoutHelm(t, got[id])
				if want[id] == nil {
					t.Errorf("the chart has %s in addition", id)
				}
			}
			for _, id := range slices.Sorted(maps.Keys(want)) {
				sortVariables(got[id])
				sortVariables(want[id])
				for _, difference := range differences(got[id], want[id], "") {
					t.Errorf("%s: %s", id, difference)
				}
			}
		})
	}
}

// objects returns the objects of a stream, by kind and name.
func objects(t *testing.T, stream string) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for document := range strings.SplitSeq(stream, "\n---\n") {
		var object map[string]any
		if err := sigsyaml.Unmarshal([]byte(strings.TrimPrefix(document, "---\n")+"\n"), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if object != nil {
			u := unstructured.Unstructured{Object: object}
			found[fmt.Sprintf("%s %s/%s", u.GroupVersionKind(), u.GetNamespace(), u.GetName())] = object
		}
	}
	return found
}

// withoutHelm takes the labels off an object that Helm's charts have by convention.
// Nothing selects by them.
func withoutHelm(t *testing.T, object map[string]any) {
	t.Helper()
	u := unstructured.Unstructured{Object: object}
	labels := u.GetLabels()
	for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"} {
		if labels[label] == "" {
			t.Errorf("%s %s lacks the label %s", u.GetKind(), u.GetName(), label)
		}
		delete(labels, label)
	}
	u.SetLabels(labels)
}

// sortVariables sorts the variables of a Deployment's container: none refers to another,
// so their order has no effect.
func sortVariables(object map[string]any) {
	containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		variables, _ := container.(map[string]any)["env"].([]any)
		slices.SortFunc(variables, func(a, b any) int {
			return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
		})
	}
	if containers != nil {
		_ = unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers")
	}
}

// differences returns the fields below path in which two values differ.
func differences(got, want any, path string) []string {
	gotFields, ok := got.(map[string]any)
	wantFields, both := want.(map[string]any)
	if !ok || !both {
		if reflect.DeepEqual(got, want) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %v in the chart, %v in the manifests", path, got, want)}
	}
	all := maps.Clone(gotFields)
	maps.Copy(all, wantFields)
	var found []string
	for _, field := range slices.Sorted(maps.Keys(all)) {
		found = append(found, differences(gotFields[field], wantFields[field], path+"."+field)...)
	}
	return found
}

// Each example of values is installed on an API server, as a user would, and upgraded to.
func TestChartInstalls(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	h := newHelm(t, "KUBECONFIG="+c.Kubeconfig())
	crds := filepath.Join("testdata", "monitoring-crds.yaml")
	kubectl(t, c, "apply", "-f", crds)
	kubectl(t, c, "wait", "--for=condition=Established", "--timeout=30s", "-f", crds)
	examples, err := filepath.Glob(filepath.Join("testdata", "chart", "*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no example of values: %v", err)
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range examples {
		t.Run(filepath.Base(values), func(t *testing.T) {
			t.Parallel()
			release := strings.TrimSuffix(filepath.Base(values), ".yaml")
			in := []string{release, chart, "--namespace", release}
			h.run(t, append([]string{"install", "--create-namespace"}, in...)...)
			notes := h.run(t, append([]string{"upgrade", "--values", values}, in...)...)
			if !strings.Contains(notes, "deployment/"+release+"-kubesync -- kubesync status") {
				t.Errorf("the notes do not say how to ask for the status:\n%s", notes)
			}
			rendered := h.run(t, append([]string{"template", "--values", values}, in...)...)
			// Server-side apply refuses lists with an item twice.
			file := filepath.Join(t.TempDir(), "rendered.yaml")
			if err := os.WriteFile(file, []byte(rendered), 0o600); err != nil {
				t.Fatal(err)
			}
			kubectl(t, c, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", file)
			deployment, err := client.AppsV1().Deployments(release).Get(t.Context(), release+"-kubesync", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"correct-horse", "battery-staple"} {
				if strings.Contains(deployment.String(), secret) {
					t.Errorf("the Deployment holds %s", secret)
				}
			}
			h.run(t, "uninstall", release, "--namespace", release, "--wait=false")
			left, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
			if err != nil || len(left.Items) > 0 {
				t.Errorf("helm uninstall leaves %v: %v", left.Items, err)
			}
		})
	}
}

// Helm takes over what `kubectl apply -k deploy/base` made, and no pod is replaced.
func TestChartTakesOverTheManifests(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	h := newHelm(t, "KUBECONFIG="+c.Kubeconfig())
	kubectl(t, c, "apply", "-k", overlay(t, variant{resource: "base"}))
	look := func() string {
		return kubectl(t, c, "get", "deployment", "kubesync", "--namespace", "kube-system", "-o", "jsonpath={.metadata.uid} {.spec}")
	}
	before := look()
	h.run(t, "install", "kubesync", chart, "--namespace", "kube-system", "--take-ownership")
	if after := look(); after != before {
		t.Errorf("UID and spec of the Deployment were\n%s\nand are\n%s", before, after)
	}
}

// What holds a secret is refused where it could be seen, and so is what contradicts
// itself. No message shows the value.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	const secret = "hunter22"
	for name, test := range map[string]struct{ values, want string }{
		"password in repos":        {"repos: ['https://joe:hunter22@h/x']", "repos[0]: the URL holds credentials"},
		"token in repos":           {"repos: ['https://h/x', 'https://hunter22@h/x']", "repos[1]: the URL holds credentials"},
		"password in config":       {"config: [{url: 'https://joe:hunter22@h/x'}]", "config[0].url: it holds credentials"},
		"REPOCREDS in env":         {"env: {REPOCREDS: 'joe:hunter22'}", "REPOCREDS: the value is a secret"},
		"NOTIFY_URL in extraEnv":   {"extraEnv: [{name: NOTIFY_URL, value: 'https://h/hunter22'}]", "NOTIFY_URL: the value is a secret"},
		"proxy with password":      {"env: {HTTPS_PROXY: 'http://joe:hunter22@proxy'}", "HTTPS_PROXY: the value is a secret"},
		"second URL with password": {"env: {REPO: 'https://h/x https://joe:hunter22@h/y'}", "REPO: the value is a secret"},
		"option with password":     {"env: {CURL_OPTIONS: '-s -u joe:hunter22'}", "CURL_OPTIONS: the value is a secret"},
		"option with token":        {"env: {KUBECTL_OPTIONS: '--token=hunter22'}", "KUBECTL_OPTIONS: the value is a secret"},
		"variable twice":           {"repos: [https://h/x]\nenv: {REPO: https://h/y}", "REPO: it is in env or extraEnv, and repos sets it as well"},
		"variable twice in env":    {"env: {WAIT: 5m}\nextraEnv: [{name: WAIT, value: 1m}]", "WAIT: it is in env or extraEnv"},
		"variable of the chart":    {"env: {POD_NAMESPACE: x}", "POD_NAMESPACE: it is in env or extraEnv, and the chart sets it as well"},
		"unknown value":            {"repo: https://h/x", "additional properties 'repo' not allowed"},
		"slip in an entry":         {"config: [{url: https://h/x, priviliged: true}]", "additional properties 'priviliged' not allowed"},
		"entry without URL":        {"config: [{name: x}]", "missing property 'url'"},
		"unknown tier":             {"tier: admin", "value must be one of 'system', 'application'"},
		"two URLs in one":          {"repos: ['https://h/x,https://h/y']", "does not match pattern"},
		"broken digest":            {"image: {digest: latest}", "does not match pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(values, []byte(test.values), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := h.try(t, "template", "kubesync", chart, "--values", values)
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("error %v, want %q:\n%s", err, test.want, out)
			}
			if strings.Contains(out, secret) {
				t.Errorf("the message shows the secret:\n%s", out)
			}
		})
	}
}

// Secrets stand in the Secret alone, encoded; numbers in variables stay what they are.
func TestChartsVariables(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	found := objects(t, h.run(t, "template", "kubesync", chart, "--values", filepath.Join("testdata", "chart", "config.yaml"),
		"--set", "env.APPLY_CONCURRENCY=1000000,env.PRUNE=false", "--set-string", "secret.data.EMPTY="))
	for id, object := range found {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "correct-horse") || strings.Contains(string(text), "battery-staple") {
			t.Errorf("%s holds a secret: %s", id, text)
		}
		switch object["kind"] {
		case "Secret":
			want := map[string]any{"REPOCREDS": "dXNlcjpjb3JyZWN0LWhvcnNl", "NOTIFY_URL": "aHR0cHM6Ly9jaGF0LmV4YW1wbGUuY29tL2JhdHRlcnktc3RhcGxl", "EMPTY": ""}
			if !reflect.DeepEqual(object["data"], want) {
				t.Errorf("the Secret holds %v, want %v", object["data"], want)
			}
		case "Deployment":
			for _, want := range []string{`{"name":"APPLY_CONCURRENCY","value":"1000000"}`, `{"name":"PRUNE","value":"false"}`} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the Deployment lacks %s: %s", want, text)
				}
			}
		}
	}
}

// What the chart makes of a list of repos is what the program reads, with the rights
// that the chart gives to it: every key that the schema knows included.
func TestChartRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	t.Parallel()
	program := filepath.Join(t.TempDir(), "kubesync")
	if err := build.Kubesync(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.WithControllers) // they fill the ClusterRole admin
	h := newHelm(t, "KUBECONFIG="+c.Kubeconfig())
	kubectl(t, c, "create", "namespace", "shop")
	site, err := gitserver.CreateRepo(t.TempDir(), "site", "master")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := site.Commit("First", map[string]string{"a.yaml": configMap("a", "shop")}); err != nil {
		t.Fatal(err)
	}
	credentials := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(credentials, []byte("user:password"), 0o600); err != nil {
		t.Fatal(err)
	}
	everyKey := map[string]any{"url": "file://" + site.Bare, "name": "again", "privileged": false, "cmd": "missing.sh", "ymldir": ".",
		"recursive": true, "version_mode": "branch:master", "interval": "1h", "prune": false, "suspend": true, "namespace": "shop",
		"namespaces": []string{"shop"}, "creds_file": credentials}
	if keys := schemaKeys(t); !slices.Equal(keys, slices.Sorted(maps.Keys(everyKey))) {
		t.Errorf("the schema knows %v, this test %v", keys, slices.Sorted(maps.Keys(everyKey)))
	}
	content, err := json.Marshal(map[string]any{
		"tier": "application", "namespaces": []string{"shop"},
		"config": []any{map[string]any{"url": "file://" + site.Bare}, everyKey},
	})
	if err != nil {
		t.Fatal(err)
	}
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, content, 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t, "install", "kubesync", chart, "--namespace", "kube-system", "--values", values)

	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := client.AppsV1().Deployments("kube-system").Get(t.Context(), "kubesync", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "config-kubesync", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mounted := t.TempDir()
	for name, content := range list.Data {
		if err := os.WriteFile(filepath.Join(mounted, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	account, err := c.ServiceAccount(t.Context(), "kube-system", deployment.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	command := exec.CommandContext(t.Context(), program)
	command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + account.Kubeconfig, "ONCE=1"}
	for _, variable := range container.Env {
		command.Env = append(command.Env, variable.Name+"="+inPod(variable, map[string]string{
			"metadata.namespace": "kube-system", "metadata.name": "kubesync-0"}, strings.NewReplacer("/etc/kubesync", mounted)))
	}
	out, err := command.CombinedOutput()
	if err != nil || strings.Contains(string(out), "is not known") {
		t.Fatalf("kubesync: %v\n%s", err, out)
	}
	kubectl(t, c, "get", "configmap", "a", "--namespace", "shop")
}

// inPod returns the value of a variable as a container gets it, with its mounts elsewhere.
func inPod(variable corev1.EnvVar, fields map[string]string, mounts *strings.Replacer) string {
	if variable.ValueFrom != nil {
		return fields[variable.ValueFrom.FieldRef.FieldPath]
	}
	return mounts.Replace(variable.Value)
}

// schemaKeys returns the keys that the chart's schema knows of an entry in config.
func schemaKeys(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Config struct {
				Items struct{ Properties map[string]any }
			}
		}
	}
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(schema.Properties.Config.Items.Properties))
}

// The table in the chart's README is what values.yaml says of each value.
func TestChartsReadme(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	rows := valueRows(t, document.Content[0], "")
	compareSection(t, filepath.Join(chart, "README.md"), "values", "| value | default | meaning |\n|---|---|---|\n"+strings.Join(rows, ""))
}

// valueRows returns a row for each value that has a meaning, and fails where one below
// has none.
func valueRows(t *testing.T, mapping *yaml.Node, path string) []string {
	t.Helper()
	var rows []string
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := path + key.Value
		_, meaning, found := strings.Cut(strings.ReplaceAll(key.HeadComment, "\n# ", " "), "# -- ")
		switch {
		case found:
			var standard any
			if err := value.Decode(&standard); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(standard)
			if err != nil {
				t.Fatal(err)
			}
			shown := "`" + string(text) + "`"
			if len(text) > 60 {
				shown = "see `values.yaml`"
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, shown, meaning))
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			rows = append(rows, valueRows(t, value, name+".")...)
		default:
			t.Errorf("values.yaml does not say what %s means", name)
		}
	}
	return rows
}

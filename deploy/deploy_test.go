package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubesync/kubesync/test/lab/build"
	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// variant is one way to put the folders of deploy/ together.
type variant struct {
	resource   string
	components []string
	violation  string // what Pod Security's restricted level has against it
}

func variants() map[string]variant {
	const hostNetwork = "host namespaces (hostNetwork=true)"
	return map[string]variant{
		"base":                     {resource: "base"},
		"restricted":               {resource: "base", components: []string{"restricted"}},
		"hostnetwork":              {resource: "base", components: []string{"hostnetwork"}, violation: hostNetwork},
		"restricted hostnetwork":   {resource: "base", components: []string{"restricted", "hostnetwork"}, violation: hostNetwork},
		"monitoring":               {resource: "base", components: []string{"monitoring"}},
		"restricted monitoring":    {resource: "base", components: []string{"restricted", "monitoring"}},
		"example":                  {resource: "example"},
		"example with restricted":  {resource: "example", components: []string{"restricted"}},
		"example with hostnetwork": {resource: "example", components: []string{"hostnetwork"}, violation: hostNetwork},
	}
}

// An API server looks at what each variant would make of a new cluster and of
// one that runs the shell script.
func TestServerAcceptsEveryVariant(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	kubectl(t, c, "label", "namespace", "kube-system", "pod-security.kubernetes.io/warn=restricted")
	// The operator's kinds, without their schemas: those test/promrules holds it to.
	crds := filepath.Join("testdata", "monitoring-crds.yaml")
	kubectl(t, c, "apply", "-f", crds)
	kubectl(t, c, "wait", "--for=condition=Established", "--timeout=30s", "-f", crds)
	dryRunAll := func(t *testing.T) {
		for name, v := range variants() {
			t.Run(name, func(t *testing.T) {
				out := kubectl(t, c, "apply", "--dry-run=server", "-k", overlay(t, v))
				var violation string
				if found := podSecurityWarning.FindStringSubmatch(out); found != nil {
					violation = found[1]
				}
				if violation != v.violation {
					t.Errorf("Pod Security says %q, want %q", violation, v.violation)
				}
			})
		}
	}
	t.Run("new cluster", dryRunAll)
	kubectl(t, c, "apply", "-f", filepath.Join("testdata", "shell-script.yaml"))
	t.Run("over the shell script", dryRunAll)
}

var podSecurityWarning = regexp.MustCompile(`would violate PodSecurity "restricted:latest": (.*)`)

// Applied over the shell script's deployment, nothing of its privileges stays, and
// the Secret is not touched.
func TestReplacesTheShellScript(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	kubectl(t, c, "apply", "-f", filepath.Join("testdata", "shell-script.yaml"))
	out := kubectl(t, c, "apply", "-k", overlay(t, variant{resource: "base"}))
	for _, want := range []string{
		"serviceaccount/kubesync configured",
		"clusterrolebinding.rbac.authorization.k8s.io/kubesync configured",
		"deployment.apps/kubesync configured",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl apply does not say %q:\n%s", want, out)
		}
	}

	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := client.AppsV1().Deployments("kube-system").Get(t.Context(), "kubesync", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.HostNetwork || pod.Containers[0].SecurityContext.Privileged != nil {
		t.Errorf("the pod keeps what the shell script had: %+v", pod)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].EmptyDir == nil || len(pod.Containers[0].VolumeMounts) != 1 {
		t.Errorf("volumes are %+v, want one emptyDir", pod.Volumes)
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": pod.Containers[0].LivenessProbe, "/readyz": pod.Containers[0].ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.IntValue() != 9798 {
			t.Errorf("the probe of %s is %+v", path, probe)
		}
	}
	if deployment.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Errorf("strategy is %s", deployment.Spec.Strategy.Type)
	}
	secret, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "kubesync", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(secret.Data["REPOCREDS"]); got != "user:password" {
		t.Errorf("the Secret's REPOCREDS are %q", got)
	}
}

// What the restricted component grants is enough to sync, change and prune an
// application repo, and not enough for anything else.
func TestRestrictedRights(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	t.Parallel()
	program := filepath.Join(t.TempDir(), "kubesync")
	if err := build.Kubesync(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.WithControllers) // they fill the ClusterRole admin
	kubectl(t, c, "apply", "-k", overlay(t, variant{resource: "base", components: []string{"restricted"}}))
	kubectl(t, c, "create", "namespace", "shop")
	daemon, err := c.ServiceAccount(t.Context(), "kube-system", "kubesync")
	if err != nil {
		t.Fatal(err)
	}
	site, err := gitserver.CreateRepo(t.TempDir(), "site", "master")
	if err != nil {
		t.Fatal(err)
	}
	sync := func(files map[string]string) (string, error) {
		t.Helper()
		if _, err := site.Commit("Next", files); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), program)
		command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + daemon.Kubeconfig,
			"REPO=file://" + site.Bare, "TIER=application", "ONCE=1"}
		out, err := command.CombinedOutput()
		return string(out), err
	}

	one := map[string]string{"a.yaml": configMap("a", "shop"), "b.yaml": configMap("b", "shop")}
	if out, err := sync(one); err != nil {
		t.Fatalf("first sync: %v\n%s", err, out)
	}
	kubectl(t, c, "get", "configmap", "a", "b", "--namespace", "shop")
	delete(one, "b.yaml")
	if out, err := sync(one); err != nil || !strings.Contains(out, `"pruned":1`) {
		t.Fatalf("second sync did not prune: %v\n%s", err, out)
	}
	one["c.yaml"] = configMap("c", "kube-system")
	if out, err := sync(one); err == nil || !strings.Contains(out, "Unprivileged repo requires privilege") {
		t.Fatalf("an object in a system namespace is not refused: %v\n%s", err, out)
	}

	for _, forbidden := range [][]string{
		{"get", "secrets", "--namespace", "kube-system"},
		{"create", "pods", "--namespace", "shop"},
		{"create", "clusterrolebindings"},
		{"bind", "clusterroles/cluster-admin"},
		{"impersonate", "users/system:admin"},
		{"impersonate", "groups/system:masters"},
	} {
		out, _ := kubectlAs(t, daemon.Kubeconfig, c, append([]string{"auth", "can-i"}, forbidden...)...)
		if !strings.HasPrefix(lastLine(out), "no") {
			t.Errorf("the daemon may %s: %s", strings.Join(forbidden, " "), out)
		}
	}
}

// configMap returns a manifest.
func configMap(name, namespace string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {k: v}\n"
}

// lastLine returns the last line that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// overlay writes a kustomization that puts a variant together, as a user's would,
// and returns its folder.
func overlay(t *testing.T, v variant) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	back, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text := "resources:\n  - " + filepath.Join(back, v.resource) + "\ncomponents:\n"
	for _, component := range v.components {
		text += "  - " + filepath.Join(back, "components", component) + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// kubectl runs kubectl as the cluster's administrator and returns what it prints.
func kubectl(t *testing.T, c *cluster.Cluster, args ...string) string {
	t.Helper()
	out, err := kubectlAs(t, c.Kubeconfig(), c, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// kubectlAs runs kubectl with a kubeconfig.
func kubectlAs(t *testing.T, kubeconfig string, c *cluster.Cluster, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), c.Program("kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}

package cluster_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/test/lab/cluster"
)

func clientFor(t *testing.T, who interface{ Config() *rest.Config }) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(who.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestClustersSideBySideAreSeparate(t *testing.T) {
	t.Parallel()
	one, other := cluster.Start(t), cluster.Start(t)
	if _, err := clientFor(t, one).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := clientFor(t, other).CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster should not have the object: %v", err)
	}
}

func TestOutage(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	maps := clientFor(t, c).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), configMap("kept"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	c.StopAPIServer()
	if _, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("stopped: got %v, want connection refused", err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("started again: %v", err)
	}

	if err := c.FreezeAPIServer(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := maps.Get(short, "kept", metav1.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen: got %v, want a timeout", err)
	}
	if err := c.ThawAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("thawed: %v", err)
	}
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	user, err := c.User("jane")
	if err != nil {
		t.Fatal(err)
	}
	account, err := c.ServiceAccount(t.Context(), "kube-system", "robot")
	if err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]cluster.Identity{"user": user, "ServiceAccount": account} {
		maps := clientFor(t, who).CoreV1().ConfigMaps("default")
		if _, err := maps.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want forbidden", name, err)
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}
		if err := c.Grant(t.Context(), who, rule); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" may list once granted", func() error {
			_, err := maps.List(t.Context(), metav1.ListOptions{})
			return err
		})
		if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want forbidden", name, err)
		}
		if err := c.GrantRole(t.Context(), who, "cluster-admin"); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" may create as cluster-admin", func() error {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{})
			return err
		})
	}
}

func TestKubeconfigWorksWithKubectl(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.WithAuditLog)
	out, err := exec.CommandContext(t.Context(), c.Program("kubectl"), "--kubeconfig", c.Kubeconfig(), "get", "namespace", "default", "-o", "name").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "namespace/default" {
		t.Errorf("kubectl: %v\n%s", err, out)
	}
	log, err := os.ReadFile(c.AuditLog())
	if err != nil || !strings.Contains(string(log), "kubectl/") {
		t.Errorf("the audit log has nothing of kubectl's: %v", err)
	}
}

func TestControllersDeleteNamespaces(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.WithControllers)
	namespaces := clientFor(t, c).CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace goes", func() error {
		_, err := namespaces.Get(t.Context(), "gone", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// victim is set in the process that TestServersDieWithTheirTest kills.
const victim = "KUBESYNC_TEST_CLUSTER_VICTIM"

func TestServersDieWithTheirTest(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	t.Parallel()
	if dir := os.Getenv(victim); dir != "" {
		if _, err := cluster.Launch(t.Context(), cluster.WithDir(dir)); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServersDieWithTheirTest$")
	cmd.Env = append(os.Environ(), victim+"="+dir)
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process should have killed itself: %v\n%s", err, out)
	}
	eventually(t, "the servers end", func() error {
		servers, err := cluster.Status(dir)
		for _, s := range servers {
			if s.Running {
				err = errors.Join(err, errors.New(s.Name+" runs as process "+strconv.Itoa(s.PID)))
			}
		}
		return err
	})
}

func TestDetached(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	t.Parallel()
	dir := t.TempDir() + "/cluster"
	t.Cleanup(func() {
		if err := cluster.Down(dir); err != nil {
			t.Error(err)
		}
	})
	if _, err := cluster.Status(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before: got %v, want that nothing is there", err)
	}
	if _, err := cluster.Launch(t.Context(), cluster.WithDir(dir), cluster.Detached); err != nil {
		t.Fatal(err)
	}
	servers, err := cluster.Status(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
		if !s.Running {
			t.Errorf("%s does not run", s.Name)
		}
	}
	if got := strings.Join(names, " "); got != "etcd kube-apiserver" {
		t.Errorf("got servers %s", got)
	}
	for range 2 { // the second finds nothing, which is no error
		if err := cluster.Down(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID) + "/cmdline"); err == nil && len(stat) > 0 {
			t.Errorf("%s still runs", s.Name)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

// eventually waits up to a minute for try to succeed.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

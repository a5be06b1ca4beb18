package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/test/lab/build"
	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// patience is how long anything may take.
const patience = time.Minute

// lab is a cluster with a daemon that serves three repos.
type lab struct {
	cluster  *cluster.Cluster
	metadata metadata.Interface
	kinds    []schema.GroupVersionResource
	hostile  *gitserver.Repo
	daemon   *daemon.Daemon
}

// entry is what counts of a line of the log.
type entry struct {
	Repo, Revision, Message, Error string
	Objects                        []string
	Prune                          string
}

// text is all that an entry says of the objects.
func (e entry) text() string {
	return strings.Join(append([]string{e.Message, e.Error, e.Prune}, e.Objects...), "\n")
}

// newLab starts it all.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{cluster: cluster.Start(t, cluster.WithControllers)}
	var err error
	config := l.cluster.Config()
	config.WarningHandler = rest.NoWarnings{}
	if l.metadata, err = metadata.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	l.kubectl(t, setting, "apply", "-f", "-")
	l.kubectl(t, "", "apply", "-k", deployment(t))
	l.kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/rollouts.example.com")
	l.kinds = l.listable(t)
	account, err := l.cluster.ServiceAccount(t.Context(), "kube-system", "kubesync")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	list := []map[string]any{}
	var first string // revision of the hostile repo
	for name, files := range map[string]map[string]string{
		"platform": {"policy.yaml": inShop("platforms")}, "neighbour": {"theirs.yaml": inShop("neighbours") + "---\n" + configMap("theirs", "office")},
		"hostile": baseline(),
	} {
		repo, err := gitserver.CreateRepo(dir, name, "master")
		if err != nil {
			t.Fatal(err)
		}
		revision, err := repo.Commit("First", files)
		if err != nil {
			t.Fatal(err)
		}
		entry := map[string]any{"url": "file://" + repo.Bare, "name": name, "privileged": name == "platform"}
		if name == "hostile" {
			l.hostile, first = repo, revision
			entry["namespaces"] = []string{"shop", "vault", "kube-system", "kube-public", "baseline"}
			entry["namespace"] = "shop"
		}
		list = append(list, entry)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	listFile := filepath.Join(dir, "list.json")
	if err := os.WriteFile(listFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l.start(t, daemon.Env{"CONFIG": listFile, "KUBECONFIG": account.Kubeconfig, "LISTEN": "off", "INTERVAL": "5s"})
	l.synced(t, first) // before it listens to signals, one would end it
	return l
}

// start starts the daemon.
func (l *lab) start(t *testing.T, variables daemon.Env) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "kubesync")
	if err := build.Kubesync(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	spec, err := daemon.Spec(program, dir, variables)
	if err != nil {
		t.Fatal(err)
	}
	if l.daemon, err = daemon.Start(spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the cluster ends
		if err := l.daemon.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the last it said:\n%s", l.daemon.Tail())
		}
	})
}

// kubectl runs kubectl as the administrator.
func (l *lab) kubectl(t *testing.T, stdin string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), l.cluster.Program("kubectl"), args...)
	command.Env = []string{"KUBECONFIG=" + l.cluster.Kubeconfig(), "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	command.Stdin = strings.NewReader(stdin)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// push commits files, the whole content of the hostile repo, and returns what the daemon
// says of it.
func (l *lab) push(t *testing.T, files map[string]string) entry {
	t.Helper()
	revision, err := l.hostile.Commit("Next", files)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.daemon.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	return l.synced(t, revision)
}

// synced waits until the daemon has synced a revision of the hostile repo, and returns what
// it says of it.
func (l *lab) synced(t *testing.T, revision string) entry {
	t.Helper()
	var last *entry
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		err := l.daemon.Lines(func(line []byte) {
			var e entry
			if json.Unmarshal(line, &e) == nil && e.Repo == "hostile" && e.Revision != "" && strings.HasPrefix(revision, e.Revision) &&
				strings.HasPrefix(e.Message, "sync") {
				last = &e
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != nil {
			return *last
		}
	}
	t.Fatalf("the daemon says nothing of revision %s:\n%s", revision, l.daemon.Tail())
	return entry{}
}

// listable returns all kinds that can be listed.
func (l *lab) listable(t *testing.T) []schema.GroupVersionResource {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(l.cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists))
	if err != nil {
		t.Fatal(err)
	}
	kinds := slices.Collect(maps.Keys(found))
	// What the servers themselves write all the time.
	return slices.DeleteFunc(kinds, func(gvr schema.GroupVersionResource) bool {
		return slices.Contains([]string{"events", "leases", "ipaddresses"}, gvr.Resource)
	})
}

// world is every object of the cluster, by kind and name, with its uid and version.
type world map[string]string

// look lists all objects.
func (l *lab) look(t *testing.T) world {
	t.Helper()
	all := world{}
	for _, gvr := range l.kinds {
		list, err := l.metadata.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list %s: %v", gvr, err)
		}
		for _, o := range list.Items {
			all[fmt.Sprintf("%s %s/%s", gvr.GroupResource(), o.Namespace, o.Name)] = string(o.UID) + " " + o.ResourceVersion
		}
	}
	return all
}

// outside returns what of the world is not the hostile repo's: all but what it has in its
// own namespaces, and kubesync's record of it.
func (w world) outside() world {
	rest := maps.Clone(w)
	maps.DeleteFunc(rest, func(name, _ string) bool {
		_, where, _ := strings.Cut(name, " ")
		namespace, object, _ := strings.Cut(where, "/")
		return (namespace == "shop" || namespace == "baseline") && !guarded(object) || where == "kube-system/kubesync-hostile"
	})
	return rest
}

// guarded reports whether an object in the hostile repo's namespaces is not its.
func guarded(name string) bool {
	return slices.Contains([]string{"platforms", "neighbours", "by-hand", "kubesync", "operator"}, name)
}

// differences lists what two worlds do not have in common.
func differences(before, after world) []string {
	var all []string
	for name, is := range before {
		if after[name] != is {
			all = append(all, fmt.Sprintf("%s was %s and is %q", name, is, after[name]))
		}
	}
	for name := range after {
		if _, was := before[name]; !was {
			all = append(all, name+" is new")
		}
	}
	slices.Sort(all)
	return all
}

// deployment writes a kustomization that takes kubesync with least rights out of deploy/.
func deployment(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	back, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%s/base]\ncomponents: [%s/components/restricted]\nreplicas: [{name: kubesync, count: 0}]\n", back, back)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

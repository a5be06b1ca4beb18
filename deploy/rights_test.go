package deploy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubesync/kubesync/test/lab/build"
	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/gitserver"
	"github.com/kubesync/kubesync/test/lab/process"
)

// right is one thing that a user may do to the objects of one kind, or did.
type right struct {
	group, resource, verb string
	name                  string // of the only object that it is for
}

// missingNamespace is where an object is declared, and waits: there is nothing to ask.
const missingNamespace = "does-not-exist"

// way is one way of running kubesync.
type way struct {
	short      string // for the test
	name       string
	components []string
	env        []string
}

// The rights that the restricted component grants are those that kubesync uses, which
// the API server's audit log shows: none is missing, none is too much. What it uses in
// each way of running is in docs/tiers-and-security.md.
func TestLeastRights(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	t.Parallel()
	program := filepath.Join(t.TempDir(), "kubesync")
	if err := build.Kubesync(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{}
	for _, w := range []way{
		{short: "application", name: "Application repos, `deploy/components/restricted`", components: []string{"restricted"}, env: []string{"TIER=application"}},
		{short: "system", name: "System repos, `deploy/base` (which grants cluster-admin)"},
	} {
		t.Run(w.short, func(t *testing.T) {
			used := w.run(t, program)
			if len(used.denied) > 0 {
				t.Errorf("kubesync asked for what it may not do:\n%s", strings.Join(used.denied, "\n"))
			}
			if slices.Contains(w.components, "restricted") {
				for _, granted := range restrictedRights(t) {
					if !used.own[granted] {
						t.Errorf("deploy/components/restricted grants %+v, which is not used", granted)
					}
				}
			}
			tables[w.name] = used.table()
		})
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintf(&text, "\n**%s**\n\n%s", name, tables[name])
	}
	compareSection(t, filepath.Join("..", "docs", "tiers-and-security.md"), "rights", text.String()+"\n")
}

var update = flag.Bool("update", false, "write what is found into docs/tiers-and-security.md and the README of the chart")

// compareSection holds what stands between two markers of a document against what it
// should be, or writes it there.
func compareSection(t *testing.T, path, name, want string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, found := strings.Cut(string(content), begin)
	got, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Errorf("%s lacks the markers of %s", path, name)
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case got != want:
		t.Errorf("%s says of %s:\n%s\nbut they are (go test ./deploy -update writes it):\n%s", path, name, got, want)
	}
}

// usage is what the audit log shows of a run.
type usage struct {
	own, limited               map[right]bool // as itself, and as kubesync-limited
	ownObjects, limitedObjects map[right]bool // for the repo's objects: what it may do there follows from what is in git
	denied                     []string
}

// table returns the rights for a person, by who has them.
func (u usage) table() string {
	var out strings.Builder
	out.WriteString("| as | what | verbs |\n|---|---|---|\n")
	for _, who := range []struct {
		name          string
		used, objects map[right]bool
	}{{"itself", u.own, u.ownObjects}, {"`kubesync-limited`", u.limited, u.limitedObjects}} {
		verbs := map[string][]string{}
		for r := range who.used {
			what := "`" + r.resource + "`"
			if r.group != "" {
				what = "`" + r.resource + "." + r.group + "`"
			}
			switch named := who.used[right{r.group, r.resource, r.verb, ""}]; {
			case r.name == "":
			case named:
				continue // that row has it
			default:
				what += " `" + r.name + "`"
			}
			verbs[what] = append(verbs[what], r.verb)
		}
		for r := range who.objects {
			verbs["objects of the kinds in git"] = append(verbs["objects of the kinds in git"], r.verb)
		}
		for _, what := range slices.Sorted(maps.Keys(verbs)) {
			slices.Sort(verbs[what])
			fmt.Fprintf(&out, "| %s | %s | %s |\n", who.name, what, strings.Join(slices.Compact(verbs[what]), ", "))
		}
	}
	return out.String()
}

// run does everything that kubesync does in this way, and returns what it used.
func (w way) run(t *testing.T, program string) usage {
	t.Helper()
	c := cluster.Start(t, cluster.WithControllers, cluster.WithAuditLog)
	kubectl(t, c, "apply", "-k", overlay(t, variant{resource: "base", components: w.components}))
	kubectl(t, c, "create", "namespace", "shop")
	kubectl(t, c, "create", "namespace", "late")
	account, err := c.ServiceAccount(t.Context(), "kube-system", "kubesync")
	if err != nil {
		t.Fatal(err)
	}
	site, err := gitserver.CreateRepo(t.TempDir(), "site", "master")
	if err != nil {
		t.Fatal(err)
	}
	d := daemon{t: t, c: c, program: program, env: append([]string{
		"HOME=" + t.TempDir(), "KUBECONFIG=" + account.Kubeconfig, "POD_NAMESPACE=kube-system",
		"REPO=file://" + site.Bare, "INTERVAL=1s", "LISTEN=off", "PROBE_LISTEN=off",
	}, w.env...)}
	w.story(t, &d, site)
	return readUsage(t, c.AuditLog())
}

// story is a life of one repo: first sync, change, drift, prune, adoption, a handed back
// Lease, a namespace that is no longer allowed, and a set that is given up.
func (w way) story(t *testing.T, d *daemon, site *gitserver.Repo) {
	t.Helper()
	commit := func(files map[string]string) {
		t.Helper()
		if _, err := site.Commit("Next", files); err != nil {
			t.Fatal(err)
		}
	}
	push := func(revision string) {
		t.Helper()
		if _, err := site.Git("push", "--force", "origin", revision+":master"); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(t, d.c, "create", "configmap", "adopted", "--namespace", "shop", "--from-literal=old=1")
	files := map[string]string{
		"a.yaml": configMap("a", "shop"), "b.yaml": configMap("b", "shop"), "adopted.yaml": configMap("adopted", "shop"),
		"job.yaml": job("once", "shop"), "secret.yaml": secret("door", "shop"),
	}
	commit(files)
	d.start()
	d.until("get", "configmap/a", "configmap/adopted", "job/once", "--namespace", "shop")

	for range 2 { // the second time is the same event again
		kubectl(t, d.c, "patch", "configmap/a", "--namespace", "shop", "--patch", `{"data": {"k": "by hand"}}`)
		d.until("wait", "configmap/a", "--namespace", "shop", "--for=jsonpath={.data.k}=v", "--timeout=1s")
	}

	kubectl(t, d.c, "create", "namespace", "new")
	delete(files, "b.yaml")
	commit(files)
	d.until("wait", "configmap/b", "--namespace", "shop", "--for=delete", "--timeout=1s")
	files["c.yaml"] = configMap("c", "new")
	commit(files)
	d.until("get", "configmap/c", "--namespace", "new")
	kubectl(t, d.c, "delete", "configmap/adopted", "--namespace", "shop")
	d.until("get", "configmap/adopted", "--namespace", "shop")
	files["d.yaml"] = configMap("d", missingNamespace)
	commit(files)
	d.said(missingNamespace)
	d.stop()

	// Where kubesync may not write any more, it can delete nothing either, and forgets
	// nothing.
	delete(files, "c.yaml")
	delete(files, "d.yaml")
	commit(files)
	d.start("NAMESPACES=shop,late")
	d.said(`"message":"synced`)
	kubectl(t, d.c, "get", "configmap/c", "--namespace", "new")
	if w.components != nil { // a namespace becomes a system's
		kubectl(t, d.c, "label", "namespace", "late", "kubesync.io/tier=system")
		d.until("wait", "rolebinding/kubesync", "--namespace", "late", "--for=delete", "--timeout=1s")
	}
	d.stop()
	d.start()
	d.until("wait", "configmap/c", "--namespace", "new", "--for=delete", "--timeout=1s")
	d.stop()

	// The same revision fails, is left, and fails again: one event, twice.
	commit(map[string]string{"bad.yaml": "kind: ["})
	commit(files)
	d.start()
	d.said(`"message":"synced`)
	for range 2 {
		push("HEAD~1")
		d.said(`bad.yaml`)
		push("HEAD")
		d.said(`"message":"synced`)
	}
	d.stop()

	// No repo has the set any more, and it is given up.
	other, err := gitserver.CreateRepo(t.TempDir(), "other", "master")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Commit("First", map[string]string{"e.yaml": configMap("e", "shop")}); err != nil {
		t.Fatal(err)
	}
	kubectl(t, d.c, "annotate", "configmap/kubesync-site", "--namespace", "kube-system", "kubesync.io/delete=site")
	if w.components != nil { // what cannot be seen keeps the parent, which knows of it
		kubectl(t, d.c, "delete", "rolebinding/kubesync", "--namespace", "shop")
		d.start("REPO=file://"+other.Bare, "LEASE=kubesync-site", "NAMESPACES=new")
		d.said("what it has in shop cannot be seen, for want of rights there")
		d.stop()
		kubectl(t, d.c, "get", "configmap/kubesync-site", "--namespace", "kube-system")
		kubectl(t, d.c, "get", "configmap/a", "--namespace", "shop")
	}
	d.start("REPO=file://"+other.Bare, "LEASE=kubesync-site")
	d.until("get", "configmap/e", "--namespace", "shop")
	d.until("wait", "configmap/kubesync-site", "--namespace", "kube-system", "--for=delete", "--timeout=1s")
	kubectl(t, d.c, "wait", "configmap/a", "--namespace", "shop", "--for=delete", "--timeout=1s")
	d.stop()
}

// daemon is a running kubesync.
type daemon struct {
	t       *testing.T
	c       *cluster.Cluster
	program string
	env     []string
	log     string
	seen    int // bytes of the log
	*process.Process
}

func (d *daemon) start(more ...string) {
	d.t.Helper()
	d.log, d.seen = filepath.Join(d.t.TempDir(), "log"), 0
	var err error
	d.Process, err = process.Start(process.Spec{Program: d.program, Env: append(slices.Clone(d.env), more...), Stdout: d.log})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(d.Kill)
}

func (d *daemon) stop() {
	d.t.Helper()
	if err := d.Signal(15); err != nil {
		d.t.Fatal(err)
	}
	<-d.Done()
}

// patience bounds what a test waits for.
const patience = time.Minute

// until waits until kubectl succeeds.
func (d *daemon) until(args ...string) {
	d.t.Helper()
	d.wait(func(context.Context) error {
		out, err := kubectlAs(d.t, d.c.Kubeconfig(), d.c, args...)
		if err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	})
}

// said waits until the log matches, after what matched before.
func (d *daemon) said(pattern string) {
	d.t.Helper()
	d.wait(func(context.Context) error {
		content, err := os.ReadFile(d.log)
		if err != nil {
			return err
		}
		at := regexp.MustCompile(pattern).FindIndex(content[d.seen:])
		if at == nil {
			return fmt.Errorf("the log does not say %s", pattern)
		}
		d.seen += at[1]
		return nil
	})
}

func (d *daemon) wait(ready func(context.Context) error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	if err := d.WaitUntil(ctx, ready); err != nil {
		d.t.Fatal(err)
	}
}

// readUsage reads what kubesync was allowed to do, and what it was not.
func readUsage(t *testing.T, path string) usage {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	used := usage{own: map[right]bool{}, limited: map[right]bool{}, ownObjects: map[right]bool{}, limitedObjects: map[right]bool{}}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return used // the last line may not be complete
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		if event.User.Username != "system:serviceaccount:kube-system:kubesync" || asksForWebhooks(event) {
			continue
		}
		used.note(event)
	}
}

// note adds a request.
func (u *usage) note(event auditv1.Event) {
	if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
		if !fallsBack(event) {
			u.denied = append(u.denied, event.Verb+" "+event.RequestURI+" "+event.ResponseStatus.Message)
		}
		return
	}
	by, objects := u.own, u.ownObjects
	if event.ImpersonatedUser != nil {
		by, objects = u.limited, u.limitedObjects
		u.own[right{"", "users", "impersonate", event.ImpersonatedUser.Username}] = true
	}
	if event.ObjectRef == nil {
		return // discovery, which is open to everybody
	}
	if isMember(event) {
		by = objects
	}
	r := right{event.ObjectRef.APIGroup, event.ObjectRef.Resource, event.Verb, ""}
	if event.ObjectRef.Subresource != "" {
		r.resource += "/" + event.ObjectRef.Subresource
	}
	by[r] = true
	named := r
	named.name = event.ObjectRef.Name
	if named.name != "" {
		by[named] = true
	}
	if event.Verb == "patch" && event.ResponseStatus != nil && event.ResponseStatus.Code == 201 {
		r.verb, named.verb = "create", "create" // server-side apply needs it for what is not there
		by[r], by[named] = true, true
		if r.resource == "rolebindings" {
			by[right{r.group, "clusterroles", "bind", "admin"}] = true // to give a role away without having it
		}
	}
}

// ofSets is how the objects of apply sets are asked for.
const ofSets = "labelSelector=applyset.kubernetes.io%2Fpart-of"

// isMember reports whether a request is about objects of the repo.
func isMember(event auditv1.Event) bool {
	written := slices.Contains([]string{"shop", "new"}, event.ObjectRef.Namespace) && slices.Contains([]string{"configmaps", "jobs", "secrets"}, event.ObjectRef.Resource)
	return written || strings.Contains(event.RequestURI, ofSets)
}

// fallsBack reports whether a request that is refused is one that kubesync has another
// way for: what is in all namespaces it asks for first, and then for what is in those
// of its repos, before and after it has rights there.
func fallsBack(event auditv1.Event) bool {
	return event.Verb == "list" && strings.Contains(event.RequestURI, ofSets) && event.ObjectRef.Namespace != missingNamespace
}

// asksForWebhooks reports whether a request is one by which kubesync wants to know why writing
// its Lease takes long, as on a busy machine: it does without an answer.
func asksForWebhooks(event auditv1.Event) bool {
	return event.Verb == "list" && event.ObjectRef != nil && event.ObjectRef.APIGroup == "admissionregistration.k8s.io"
}

// restrictedRights returns what the restricted component grants, one verb at a time.
func restrictedRights(t *testing.T) []right {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("components", "restricted", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []right
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has its rules in the same place
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			names := rule.ResourceNames
			if names == nil {
				names = []string{""}
			}
			for _, name := range names {
				for _, verb := range rule.Verbs {
					all = append(all, right{rule.APIGroups[0], rule.Resources[0], verb, name})
				}
			}
		}
	}
	return all
}

func job(name, namespace string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'a:1'}]}}}\n"
}

func secret(name, namespace string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nstringData: {key: under-the-mat}\n"
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/apiproxy"
	"github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// walk is one random walk: a world in the model, and the servers and daemons that are
// held against it.
type walk struct {
	place
	site  *site
	seed  int
	dir   string
	world *world

	git   *gitserver.Server
	repos map[string]*gitserver.Repo
	shas  map[string][]string // of each repo's commits, by number
	proxy *apiproxy.Proxy     // the daemons' way to the API server

	interval string
	daemons  []*asked // that run; the one writer first, as far as the walk knows
	started  int      // so far
	known    map[id]seen
	touched  map[id]bool // since the last quiet point

	taken   []string // steps, for a person
	stats   stats
	samples func(context.Context, *asked) error // nil, or what looks at the daemon at quiet points
}

// seen is what was seen of an object at the last quiet point.
type seen struct{ uid, version string }

// stats say what walks have done.
type stats struct {
	walks, steps, quiets int
	objects              int // that were looked at, at all quiet points
	waits                []time.Duration
}

// newWalk makes the servers of a walk, and its namespaces.
func (s *site) newWalk(ctx context.Context, seed int) (_ *walk, err error) {
	w := &walk{
		place: place{prefix: "w" + strconv.FormatInt(int64(seed), 36)}, site: s, seed: seed, world: newWorld(),
		repos: map[string]*gitserver.Repo{}, shas: map[string][]string{}, known: map[id]seen{}, touched: map[id]bool{},
		dir: filepath.Join(s.Dir, "w"+strconv.FormatInt(int64(seed), 36)),
	}
	// A daemon that polls all the time, or one that has to be made to: the latter shows
	// what no one wakes up for.
	w.interval = []string{"1s", "1h"}[seed%2]
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory of a walk: %w", err)
	}
	if w.git, err = gitserver.Launch(gitserver.WithDir(filepath.Join(w.dir, "git"))); err != nil {
		return nil, err
	}
	if w.proxy, err = apiproxy.Launch(s.cluster.Config()); err != nil {
		return nil, err
	}
	if err := w.proxy.Kubeconfig(w.path("kubeconfig")); err != nil {
		return nil, err
	}
	for _, r := range w.world.repos {
		if w.repos[r.name], err = w.git.CreateRepo(r.name); err != nil {
			return nil, err
		}
		if err := w.push(r); err != nil {
			return nil, err
		}
	}
	for _, ns := range []string{"a", "b", "home"} {
		object := fields{"apiVersion": "v1", "kind": namespaceKind, "metadata": fields{"name": w.namespace(ns)}}
		if _, err := w.client(namespaceKind, "").Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("namespace of a walk: %w", err)
		}
	}
	return w, w.writeList()
}

func (w *walk) path(name string) string { return filepath.Join(w.dir, name) }

// client is for the objects of a kind in one of the walk's namespaces.
func (w *walk) client(kind, namespace string) dynamic.ResourceInterface {
	_, gvr := w.typeOf(kind)
	if namespace == "" {
		return w.site.dynamic.Resource(gvr)
	}
	return w.site.dynamic.Resource(gvr).Namespace(w.namespace(namespace))
}

// close ends what the walk has started, and takes its objects away. The cluster may
// take its time to do so.
func (w *walk) close() {
	for _, d := range w.daemons {
		d.Kill()
	}
	if w.proxy != nil {
		w.proxy.Close()
	}
	if w.git != nil {
		_ = w.git.Close() // its files go with the site
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, i := range []id{definition(), {kind: priorityClass, name: "one"}, movable(), {kind: namespaceKind, name: "a"}, {kind: namespaceKind, name: "b"}, {kind: namespaceKind, name: "home"}} {
		_ = w.client(i.kind, "").Delete(ctx, w.name(i), metav1.DeleteOptions{}) // what is not there need not go
	}
}

// writeList writes the CONFIG list that the model has in mind.
func (w *walk) writeList() error {
	var list []fields
	for _, r := range w.world.repos {
		if !r.listed {
			continue
		}
		e := fields{"url": w.git.URL(r.name), "version_mode": "branch:master", "recursive": true, "privileged": r.system, "prune": r.prune}
		if !r.system {
			e["namespaces"] = []string{w.namespace("a"), w.namespace("b"), w.namespace("c")}
		}
		list = append(list, e)
	}
	content, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("CONFIG list: %w", err)
	}
	if w.world.listBroken {
		content = []byte("[{")
	}
	// In one go, as a ConfigMap in a volume changes: half a list is another story.
	if err := os.WriteFile(w.path("list.new"), content, 0o600); err != nil {
		return fmt.Errorf("CONFIG list: %w", err)
	}
	return os.Rename(w.path("list.new"), w.path("list.json"))
}

// start starts a daemon.
func (w *walk) start() error {
	w.started++
	d, err := startDaemon(w.site.Program, w.path("d"+strconv.Itoa(w.started)), daemon.Env{
		"KUBECONFIG": w.path("kubeconfig"), "CONFIG": w.path("list.json"), "POD_NAMESPACE": w.home(), "INTERVAL": w.interval,
		"PRUNE_LIMIT": strconv.Itoa(pruneLimit), "TIMEOUT": "10s", "LOG_LEVEL": "debug",
	})
	if err != nil {
		return err
	}
	w.daemons = append(w.daemons, d)
	return nil
}

// push makes a commit of the newest that the model has of a repo, and pushes it.
func (w *walk) push(r *repo) error {
	head := r.head()
	files := map[string]string{"README.md": "A walk.\n"}
	for i, e := range head.tree {
		content, err := json.Marshal(w.manifest(i, e))
		if err != nil {
			return fmt.Errorf("manifest of %s: %w", i, err)
		}
		dir := []string{"", "sub/", "sub/deep/"}[e.dir]
		files[dir+strings.ToLower(i.kind+"-"+i.namespace+"-"+i.name)+".json"] = string(content)
	}
	if head.broken != "" {
		files["broken.yaml"] = w.breakage(head.broken)
	}
	message := fmt.Sprintf("Commit %d", r.at())
	if head.trailer {
		message += "\n\n" + approvalTrailer
	}
	sha, err := w.repos[r.name].Commit(message, files)
	if err != nil {
		return err
	}
	w.shas[r.name] = append(w.shas[r.name], sha)
	return nil
}

// breakage is a file because of which a revision cannot be loaded.
func (w *walk) breakage(why string) string {
	switch why {
	case brokenNameless:
		return "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: " + w.namespace("a") + "}}\n"
	case brokenTwice:
		one := "{apiVersion: v1, kind: ConfigMap, metadata: {name: twice, namespace: " + w.namespace("a") + "}}\n"
		return one + "---\n" + one
	case brokenRefused:
		return "{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace("refused") + "}}\n"
	}
	return "apiVersion: v1\nkind: [\n"
}

// run takes the walk's steps: first something for each repo, then as many as are
// asked for, a quiet point after every few, and one at the end. only, if not nil, says
// which of them are taken.
func (w *walk) run(ctx context.Context, steps int, only map[int]bool) error {
	if err := w.start(); err != nil {
		return err
	}
	for number, s := range plan(w.seed, steps) {
		if only != nil && !only[number] && s.op != opQuiet || !w.world.allows(s) {
			continue
		}
		if err := w.take(ctx, number, s); err != nil {
			return err
		}
	}
	return w.finish(ctx)
}

// take takes a step, in the model and in the world.
func (w *walk) take(ctx context.Context, number int, s step) error {
	w.taken = append(w.taken, fmt.Sprintf("%3d %s %s", number, time.Now().Format(time.TimeOnly), s))
	w.stats.steps++
	if s.op == opQuiet {
		w.world.settle()
		if err := w.quiet(ctx); err != nil {
			return fmt.Errorf("step %d, %s: %w", number, s, err)
		}
		w.world.begin()
		return nil
	}
	if err := w.do(ctx, s); err != nil {
		return fmt.Errorf("step %d, %s: %w", number, s, err)
	}
	return nil
}

// finish looks whether all stays as it is, and stops the daemons.
func (w *walk) finish(ctx context.Context) error {
	if err := testlab.Sleep(ctx, time.Second); err != nil {
		return err
	}
	if problems, err := w.compare(ctx); err != nil || len(problems) > 0 {
		return errors.Join(err, errorOf("after the last quiet point", problems))
	}
	for _, d := range w.daemons {
		if err := d.Stop(ctx); err != nil {
			return err
		}
		if found, err := d.mistakes(); err != nil || found != "" {
			return errors.Join(err, fmt.Errorf("the log says:\n%s", found))
		}
	}
	w.stats.walks++
	return nil
}

// errorOf makes an error of problems; nil of none.
func errorOf(when string, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s:\n  %s", when, strings.Join(problems, "\n  "))
}

// patience is how long a quiet point may take to come: a Lease that no one gives back,
// a Namespace that is deleted, and retries after an outage each take some of it.
const patience = 2 * time.Minute

// truthTime is how long the status may say that all is well before it is: what a watch
// has yet to tell.
const truthTime = 10 * time.Second

// pokeEvery is how often daemons are made to poll while it is not quiet.
const pokeEvery = 10 * time.Second

// quiet ends all outages, and waits until status and cluster are what the model says. Then it
// has everything looked at from scratch, which must find nothing that has to be written.
func (w *walk) quiet(ctx context.Context) error {
	if err := w.calm(); err != nil {
		return err
	}
	took, err := w.settled(ctx)
	if err != nil {
		return err
	}
	if err := w.remember(ctx); err != nil {
		return err
	}
	if err := w.distrust(ctx); err != nil {
		return err
	}
	if _, err := w.settled(ctx); err != nil {
		return fmt.Errorf("looked at from scratch: %w", err)
	}
	w.stats.quiets++
	w.stats.waits = append(w.stats.waits, took)
	written, err := w.written(ctx)
	return errors.Join(err, errorOf("all was as it should be, and a sync from scratch has written nevertheless", written))
}

// distrust changes a Namespace, so that no daemon takes for granted what it has seen before.
func (w *walk) distrust(ctx context.Context) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"model":"quiet-%d"}}}`, len(w.taken))
	_, err := w.client(namespaceKind, "").Patch(ctx, w.home(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label a Namespace: %w", err)
	}
	return nil
}

// written returns which objects were written since they were remembered, of kinds that
// no controller writes.
func (w *walk) written(ctx context.Context) ([]string, error) {
	live, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	var written []string
	for i, o := range live {
		if before, known := w.known[i]; (i.kind == configMap || i.kind == secret) && known && before.version != o.GetResourceVersion() {
			written = append(written, i.String())
		}
	}
	slices.Sort(written)
	return written, nil
}

// settled waits until status and cluster are what the model says, and returns how long that
// took.
func (w *walk) settled(ctx context.Context) (took time.Duration, err error) {
	began := time.Now()
	var poked, truthful time.Time
	for {
		if time.Since(poked) > pokeEvery {
			w.poke(ctx)
			if poked.IsZero() {
				began = time.Now()
			}
			poked = time.Now()
		}
		problems, err := w.checkDaemons(ctx, began)
		if err != nil {
			return 0, err
		}
		if len(problems) > 0 {
			truthful = time.Time{}
		} else {
			if truthful.IsZero() {
				truthful = time.Now()
			}
			if problems, err = w.compare(ctx); err != nil {
				return 0, err
			}
			if len(problems) == 0 {
				return time.Since(began), nil
			}
			if time.Since(truthful) > truthTime {
				return 0, errorOf("the status says that all is done, but", problems)
			}
		}
		if time.Since(began) > patience {
			return 0, errorOf(fmt.Sprintf("not as it should be after %s", patience), problems)
		}
		if err := testlab.Sleep(ctx, 100*time.Millisecond); err != nil {
			return 0, errors.Join(err, errorOf("so far", problems))
		}
	}
}

// remember notes what is there, for the next quiet point.
func (w *walk) remember(ctx context.Context) error {
	live, err := w.look(ctx)
	if err != nil {
		return err
	}
	w.known = map[id]seen{}
	for i, o := range live {
		w.known[i] = seen{uid: string(o.GetUID()), version: o.GetResourceVersion()}
	}
	w.stats.objects += len(live)
	clear(w.touched)
	if w.samples != nil && len(w.daemons) > 0 {
		return w.samples(ctx, w.daemons[0])
	}
	return nil
}

// clearLease does what an operator does who knows that the holder is dead.
func (w *walk) clearLease(ctx context.Context) error {
	gvr := leases()
	err := w.site.dynamic.Resource(gvr).Namespace(w.home()).Delete(ctx, "kubesync", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Lease of a daemon that was killed: %w", err)
	}
	return nil
}

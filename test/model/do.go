package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/apiproxy"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// do takes a step: in the model first, which then says what a commit holds and what
// the list names.
func (w *walk) do(ctx context.Context, s step) error {
	var was object
	if o := w.world.live[s.id]; o != nil {
		was = *o
	}
	w.world.act(s)
	r := w.world.repo(s.repo)
	if s.id != (id{}) {
		w.touched[s.id] = true
	}
	switch s.op {
	case opPush, opRevert:
		return w.push(r)
	case opForce:
		return w.reset(r)
	case opDropBranch:
		_, err := w.repos[r.name].Git("--git-dir", w.repos[r.name].Bare, "update-ref", "-d", "refs/heads/master")
		return err
	case opMove:
		return w.move(s)
	case opForeign:
		return w.createForeign(ctx, s)
	case opForeignDelete, opDelete:
		return w.delete(ctx, s.id)
	case opClientSide:
		return w.applyClientSide(ctx, s.id, was.entry)
	case opServerSide, opConflict:
		return w.applyServerSide(ctx, s)
	case opApprove, opSuspendRepo, opUnsuspendRepo:
		return w.annotateParent(ctx, s, r)
	case opUnlist, opList, opPruneOff, opPruneOn, opBreakList, opMendList:
		return w.writeList()
	case opWait:
		return testlab.Sleep(ctx, 500*time.Millisecond)
	case opRestart, opKill, opStandby, opNoStandby, opFailover, opRelease:
		return w.doDaemon(ctx, s)
	case opAPIOutage, opAPICut, opAPIFaults, opGitOutage:
		return w.disturb(ctx, s)
	}
	return w.change(ctx, s)
}

// reset makes the branch what it was, by force.
func (w *walk) reset(r *repo) error {
	for _, args := range [][]string{{"reset", "--quiet", "--hard", w.shas[r.name][r.at()]}, {"push", "--quiet", "--force", "origin", "HEAD"}} {
		if _, err := w.repos[r.name].Git(args...); err != nil {
			return err
		}
	}
	return nil
}

// move takes an object out of one repo and puts it into another: there first, or in
// one moment as far as a daemon can see, since an object that is nowhere is rightly
// deleted.
func (w *walk) move(s step) error {
	from, to := w.world.repo(s.repo), w.world.repo(s.to)
	if s.addFirst {
		return errors.Join(w.push(to), w.push(from))
	}
	w.git.Down()
	if err := errors.Join(w.push(from), w.push(to)); err != nil {
		return err
	}
	if w.world.burst.gitOutage {
		return nil // the next quiet point ends it
	}
	return w.git.Up()
}

// createForeign makes an object that no repo declares.
func (w *walk) createForeign(ctx context.Context, s step) error {
	object := w.manifest(s.id, entry{})
	o := &unstructured.Unstructured{Object: object}
	o.SetLabels(nil)
	if s.repo != "" {
		o.SetLabels(map[string]string{partOfLabel: w.setID(s.repo)})
	}
	if s.number == 1 {
		o.SetAnnotations(map[string]string{csaAnnotation: "yes"})
		return w.kubectlApply(ctx, object)
	}
	o.SetAnnotations(map[string]string{handAnnotation: "yes"})
	client := w.client(s.id.kind, s.id.namespace)
	if s.restores() {
		_, err := client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "kubesync"})
		return explain("restore a foreign object", err)
	}
	_, err := client.Create(ctx, o, metav1.CreateOptions{FieldManager: "hand"})
	return explain("create a foreign object", err)
}

func (w *walk) delete(ctx context.Context, i id) error {
	return explain("delete by hand", w.client(i.kind, i.namespace).Delete(ctx, w.name(i), metav1.DeleteOptions{}))
}

// applyClientSide applies what git says but for one field, as a person with kubectl
// does.
func (w *walk) applyClientSide(ctx context.Context, i id, e entry) error {
	e.variant += 20
	e.invalid = false
	object := w.manifest(i, e)
	o := &unstructured.Unstructured{Object: object}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[csaAnnotation] = "yes"
	o.SetAnnotations(annotations)
	return w.kubectlApply(ctx, object)
}

func (w *walk) kubectlApply(ctx context.Context, object fields) error {
	content, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	cmd := exec.CommandContext(ctx, w.site.cluster.Program("kubectl"), "apply", "--validate=ignore", "-f", "-")
	cmd.Env = []string{"KUBECONFIG=" + w.site.cluster.Kubeconfig(), "HOME=" + w.dir}
	cmd.Stdin = bytes.NewReader(content)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, out)
	}
	return nil
}

// applyServerSide applies as another field manager: a field of its own and, by force,
// one of ours.
func (w *walk) applyServerSide(ctx context.Context, s step) error {
	gvk, _ := w.typeOf(s.id.kind)
	meta := fields{"name": w.name(s.id), "annotations": fields{otherAnnotation: "yes"}}
	if s.id.namespace != "" {
		meta["namespace"] = w.namespace(s.id.namespace)
	}
	object := fields{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": meta}
	if s.op == opConflict {
		meta["labels"] = fields{variantLabel: "conflict"}
	}
	content, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	force := s.op == opConflict
	_, err = w.client(s.id.kind, s.id.namespace).Patch(ctx, w.name(s.id), types.ApplyPatchType, content, metav1.PatchOptions{FieldManager: "other", Force: &force})
	return explain("apply as another manager", err)
}

// change edits an object as a person does: reads it, changes it, writes it.
func (w *walk) change(ctx context.Context, s step) error {
	client := w.client(s.id.kind, s.id.namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := client.Get(ctx, w.name(s.id), metav1.GetOptions{})
		if err != nil {
			return err
		}
		w.alter(s, o)
		_, err = client.Update(ctx, o, metav1.UpdateOptions{FieldManager: "hand"})
		return err
	})
	return explain("edit by hand", err)
}

// alter is what a person changes.
func (w *walk) alter(s step, o *unstructured.Unstructured) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	switch s.op {
	case opSpoil:
		spoil(s.id.kind, o.Object)
		return
	case opAnnotate:
		annotations[handAnnotation] = "yes"
	case opUnlabel, opReclaim:
		delete(labels, partOfLabel)
	case opRelabel:
		labels[partOfLabel] = w.setID(s.to)
	case opAlienate:
		labels[partOfLabel] = alienSet
	case opSuspend:
		annotations[suspendAnnotation] = "true"
	case opUnsuspend:
		delete(annotations, suspendAnnotation)
	case opKeep:
		annotations[pruneAnnotation] = "false"
	case opUnkeep:
		delete(annotations, pruneAnnotation)
	case opForeignLabel:
		labels[partOfLabel] = w.setID(s.repo)
	case opForeignEdit:
		annotations[handAnnotation] = time.Now().Format(time.RFC3339Nano)
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// alienSet is the label of a set that there is not.
const alienSet = "applyset-bm9ib2R5LWhhcy1tYWRlLXRoaXMtc2V0LW9mLW9iamVjdHM-v1"

// parents are where the daemons' own records are.
func parents() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}

// annotateParent steers a repo as docs/configuration.md says.
func (w *walk) annotateParent(ctx context.Context, s step, r *repo) error {
	annotations := fields{}
	switch s.op {
	case opApprove:
		annotations[approveAnnotation] = w.approval(r)
	case opSuspendRepo:
		annotations[suspendAnnotation] = "true"
	case opUnsuspendRepo:
		annotations[suspendAnnotation] = nil
	}
	patch, err := json.Marshal(fields{"metadata": fields{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	_, err = w.site.dynamic.Resource(parents()).Namespace(w.home()).Patch(ctx, "kubesync-"+r.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "hand"})
	return explain("annotate a parent", err)
}

// approval is what the annotation on a repo's parent says; "" for nothing.
func (w *walk) approval(r *repo) string {
	if r.approved < 0 {
		return ""
	}
	return fmt.Sprintf("%s,%d", w.shas[r.name][r.approved], r.count)
}

// explain says what was tried. That an object is gone is no failure: a daemon may be
// about to make it anew.
func explain(what string, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// doDaemon starts and ends daemons. The first one is the writer.
func (w *walk) doDaemon(ctx context.Context, s step) error {
	switch s.op {
	case opStandby:
		return w.start()
	case opNoStandby:
		return w.end(ctx, len(w.daemons)-1, false)
	}
	if err := w.lead(ctx); err != nil {
		return err
	}
	if err := w.end(ctx, 0, s.op == opKill || s.op == opFailover); err != nil {
		return err
	}
	if (s.op == opKill || s.op == opFailover) && s.number > 0 {
		if err := w.clearLease(ctx); err != nil {
			return err
		}
	}
	if s.op == opRestart || s.op == opKill {
		return w.start()
	}
	return nil
}

// lead puts the daemon first that holds the Lease, if that can be known.
func (w *walk) lead(ctx context.Context) error {
	for at, d := range w.daemons {
		if o, err := d.overview(ctx); err == nil && o.Writing {
			w.daemons[0], w.daemons[at] = w.daemons[at], w.daemons[0]
			return nil
		}
	}
	return nil
}

// end ends a daemon, and looks into its log.
func (w *walk) end(ctx context.Context, at int, kill bool) error {
	d := w.daemons[at]
	if kill {
		d.Kill()
	} else if err := d.Stop(ctx); err != nil {
		return err
	}
	w.daemons = append(w.daemons[:at:at], w.daemons[at+1:]...)
	found, err := d.mistakes()
	if err != nil || found != "" {
		return errors.Join(err, fmt.Errorf("the log says:\n%s", found))
	}
	return nil
}

// disturb comes between daemons and servers.
func (w *walk) disturb(ctx context.Context, s step) error {
	all := regexp.MustCompile(".")
	switch s.op {
	case opAPICut:
		return w.proxy.Cut()
	case opAPIFaults:
		codes := []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusConflict, http.StatusForbidden, http.StatusGone}
		pattern := []*regexp.Regexp{all, regexp.MustCompile("^(PATCH|POST|PUT|DELETE)")}[s.number%2]
		w.proxy.Fail(apiproxy.Fault{Pattern: pattern, Status: codes[s.number], Times: 1 + 3*s.number})
		return nil
	case opGitOutage:
		behaviours := []gitserver.Behaviour{gitserver.Failing(503), gitserver.CutInPack(), gitserver.Failing(404), gitserver.Unauthorized(), gitserver.Slow(time.Second)}
		if s.number == len(behaviours) {
			w.git.Down()
			return nil
		}
		w.git.Behave(behaviours[s.number])
		return nil
	}
	if s.number%2 == 0 {
		w.proxy.Down()
	} else {
		w.proxy.Fail(apiproxy.Fault{Pattern: all}) // it does what it is asked, and does not answer
	}
	// Rarely long enough for the Lease to be lost.
	return testlab.Sleep(ctx, []time.Duration{0, 200, 1000, 2000, 3000, 12000}[s.number]*time.Millisecond)
}

// calm ends all outages.
func (w *walk) calm() error {
	w.git.Behave(gitserver.Normal())
	w.proxy.Normal()
	if err := w.git.Up(); err != nil {
		return err
	}
	w.proxy.Down()
	return w.proxy.Up()
}

// poke tells all daemons to poll. One that does not answer yet is about to do so by
// itself, and the signal would end it.
func (w *walk) poke(ctx context.Context) {
	for _, d := range w.daemons {
		if _, err := d.overview(ctx); err == nil {
			_ = d.Signal(syscall.SIGHUP) // whether it has ended is looked at next
		}
	}
}

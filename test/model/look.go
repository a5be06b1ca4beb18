package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// setID is the label of a repo's objects (KEP-3659).
func (p place) setID(repo string) string {
	sum := sha256.Sum256([]byte("kubesync-" + repo + "." + p.home() + ".ConfigMap."))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// look returns what there is in the cluster of what walks know.
func (w *walk) look(ctx context.Context) (map[id]*unstructured.Unstructured, error) {
	known := map[id]bool{{kind: namespaceKind, name: "a"}: true, {kind: namespaceKind, name: "b"}: true}
	kinds := map[string]bool{}
	for _, i := range append(undeclared(), universe()...) {
		known[i], kinds[i.kind] = true, true
	}
	found := map[id]*unstructured.Unstructured{}
	for kind := range kinds {
		_, gvr := w.typeOf(kind)
		list, err := w.site.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) && kind == widget {
			continue // its CRD is not there
		}
		if err != nil {
			return nil, fmt.Errorf("look at all objects of kind %s: %w", kind, err)
		}
		for at := range list.Items {
			o := &list.Items[at]
			if i, ok := w.identify(kind, o); ok && (known[i] || o.GetLabels()[partOfLabel] != "") {
				found[i] = o
			}
		}
	}
	return found, nil
}

// identify returns what the model calls an object; false for other walks' objects.
func (w *walk) identify(kind string, o *unstructured.Unstructured) (id, bool) {
	if o.GetNamespace() != "" {
		ns, mine := strings.CutPrefix(o.GetNamespace(), w.prefix+"-")
		return id{kind, ns, o.GetName()}, mine
	}
	if kind == crd {
		name, mine := strings.CutSuffix(o.GetName(), "."+w.group())
		return id{kind: kind, name: name}, mine
	}
	name, mine := strings.CutPrefix(o.GetName(), w.prefix+"-")
	return id{kind: kind, name: name}, mine
}

// compare holds the cluster against the model, and returns all that is wrong.
func (w *walk) compare(ctx context.Context) ([]string, error) {
	live, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, i := range w.world.liveIDs() {
		for _, problem := range w.judge(i, w.world.live[i], live[i]) {
			problems = append(problems, i.String()+": "+problem)
		}
	}
	for i, o := range live {
		if w.world.live[i] == nil {
			problems = append(problems, fmt.Sprintf("%s: is there (label %q), and no one declares it or holds it", i, o.GetLabels()[partOfLabel]))
		}
	}
	more, err := w.checkParents(ctx)
	if err != nil {
		return nil, err
	}
	problems = append(problems, more...)
	more, err = w.checkBindings(ctx)
	slices.Sort(problems)
	return append(problems, more...), err
}

// judge returns what is wrong with an object.
func (w *walk) judge(i id, o *object, live *unstructured.Unstructured) []string {
	if o.maybe {
		return nil
	}
	if live == nil {
		return []string{"is not there"}
	}
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if live.GetDeletionTimestamp() != nil {
		wrong("is being deleted")
	}
	before, known := w.known[i]
	if known && !o.fresh && before.uid != string(live.GetUID()) {
		wrong("was deleted and made anew: uid %s, before %s", live.GetUID(), before.uid)
	}
	label := live.GetLabels()[partOfLabel]
	if o.owner == "" {
		if still := i.kind == configMap || i.kind == secret; still && known && !w.touched[i] && before.version != live.GetResourceVersion() {
			wrong("is another owner's, and a user wrote it")
		}
	}
	wanted := ""
	switch {
	case o.alien:
		wanted = alienSet
	case o.owner != "":
		wanted = w.setID(o.owner)
	case o.label != "":
		wanted = w.setID(o.label)
	}
	if label != wanted {
		wrong("has the label %q instead of %q (%s)", label, wanted, o.owner)
	}
	for annotation, should := range map[string]bool{handAnnotation: o.hand, otherAnnotation: o.other, suspendAnnotation: o.suspended} {
		if _, is := live.GetAnnotations()[annotation]; is != should {
			wrong("annotation %s: %v, not %v", annotation, is, should)
		}
	}
	if o.owner != "" {
		problems = append(problems, w.judgeOurs(i, o, live)...)
	}
	return problems
}

// judgeOurs returns what is wrong with an object of a repo.
func (w *walk) judgeOurs(i id, o *object, live *unstructured.Unstructured) []string {
	var problems []string
	ours := slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == fieldManager && e.Operation == metav1.ManagedFieldsOperationApply
	})
	if !ours {
		problems = append(problems, "has no field that is ours")
	}
	if o.loose {
		return problems
	}
	manifest := w.manifest(i, o.entry)
	if data, _ := manifest["data"].(fields); o.entry.ignore {
		if delete(data, "value"); len(data) == 0 {
			delete(manifest, "data")
		}
	}
	if at := differs("", manifest, live.Object); at != "" {
		problems = append(problems, "is not as declared: "+at)
	}
	_, odd, err := unstructured.NestedString(live.Object, "data", "odd")
	if err == nil && i.kind == configMap && odd != (o.entry.variant%2 == 1) {
		problems = append(problems, fmt.Sprintf("data.odd is there: %v", odd))
	}
	annotations := live.GetAnnotations()
	for annotation, should := range map[string]bool{oddAnnotation: o.entry.variant%2 == 1, csaAnnotation: o.csa, pruneAnnotation: o.kept || o.entry.keep} {
		if _, is := annotations[annotation]; is != should {
			problems = append(problems, fmt.Sprintf("annotation %s: %v, not %v", annotation, is, should))
		}
	}
	return problems
}

// differs returns the first place where what is declared is not what is live; empty if
// there is none. Lists are compared item by item.
func differs(at string, declared, live any) string {
	switch declared := declared.(type) {
	case fields:
		object, ok := live.(fields)
		if !ok {
			return fmt.Sprintf("%s is %v", at, live)
		}
		for key, value := range declared {
			if found := differs(at+"."+key, value, object[key]); found != "" {
				return found
			}
		}
		return ""
	case []any:
		items, ok := live.([]any)
		if !ok || len(items) != len(declared) {
			return fmt.Sprintf("%s is %v instead of %v", at, live, declared)
		}
		for n := range declared {
			if found := differs(fmt.Sprintf("%s[%d]", at, n), declared[n], items[n]); found != "" {
				return found
			}
		}
		return ""
	}
	if !reflect.DeepEqual(declared, live) {
		return fmt.Sprintf("%s is %v instead of %v", at, live, declared)
	}
	return ""
}

// checkParents holds the parents against the model.
func (w *walk) checkParents(ctx context.Context) ([]string, error) {
	var problems []string
	for _, r := range w.world.repos {
		parent, err := w.site.dynamic.Resource(parents()).Namespace(w.home()).Get(ctx, "kubesync-"+r.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			problems = append(problems, "the parent of "+r.name+" is not there")
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at a parent: %w", err)
		}
		if set := parent.GetLabels()[parentIDLabel]; set != w.setID(r.name) {
			problems = append(problems, fmt.Sprintf("the parent of %s has the ID %q", r.name, set))
		}
		approved := w.approval(r)
		if given := parent.GetAnnotations()[approveAnnotation]; given != approved {
			problems = append(problems, fmt.Sprintf("the parent of %s approves %q instead of %q", r.name, given, approved))
		}
		recorded, _, err := unstructured.NestedString(parent.Object, "data", "revision")
		if r.synced >= 0 && recorded != w.shas[r.name][r.synced] {
			problems = append(problems, fmt.Sprintf("the parent of %s records revision %s instead of commit %d, %s (%v)", r.name, recorded, r.synced, w.shas[r.name][r.synced], err))
		}
	}
	return problems, nil
}

// checkBindings looks for the RoleBindings that application repos need: they are there
// while one is listed, and no longer.
func (w *walk) checkBindings(ctx context.Context) ([]string, error) {
	var problems []string
	for _, ns := range []string{"a", "b", "c"} {
		_, err := w.client(roleBinding, ns).Get(ctx, bindingName, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("look at a RoleBinding: %w", err)
		}
		is, wanted := err == nil, w.world.repo("team").listed && w.world.live[id{kind: namespaceKind, name: ns}] != nil
		if is != wanted {
			problems = append(problems, fmt.Sprintf("RoleBinding %s in %s: %v, not %v", bindingName, ns, is, wanted))
		}
	}
	return problems, nil
}

// checkDaemons holds what the daemons say of themselves against the model. What the
// status says is of a sync that ended after the daemons were made to poll.
func (w *walk) checkDaemons(ctx context.Context, since time.Time) ([]string, error) {
	var problems []string
	writers := 0
	for _, d := range w.daemons {
		if d.Ended() {
			return nil, d.Exited()
		}
		o, err := d.overview(ctx)
		if err != nil {
			problems = append(problems, err.Error()) // it is starting
			continue
		}
		if !o.Writing {
			continue
		}
		writers++ // only that one reads the list again
		if (o.ListError != nil) != w.world.listBroken {
			problems = append(problems, fmt.Sprintf("the list cannot be read: %v, not %v", o.ListError != nil, w.world.listBroken))
		}
		if o.Stale != nil {
			problems = append(problems, "the status is stale")
		}
		problems = append(problems, w.checkStatus(o, since)...)
		found, err := d.mistakes()
		if err != nil || found != "" {
			return nil, errors.Join(err, fmt.Errorf("the log says:\n%s", found))
		}
	}
	if writers != 1 {
		problems = append(problems, fmt.Sprintf("%d daemons are the one writer", writers))
	}
	return problems, nil
}

// checkStatus holds what the one writer says of each repo against the model.
func (w *walk) checkStatus(o overview, since time.Time) []string {
	var problems []string
	listed := map[string]bool{}
	for _, t := range o.Repos {
		r := w.world.repo(t.Name)
		if r == nil || !r.listed {
			problems = append(problems, t.Name+" is not listed, and the status shows it")
			continue
		}
		listed[r.name] = true
		for _, problem := range w.checkRepo(r, t, since) {
			problems = append(problems, t.Name+": "+problem)
		}
	}
	for _, r := range w.world.repos {
		if r.listed && !listed[r.name] {
			problems = append(problems, r.name+" is listed, and the status does not show it")
		}
		unlisted := slices.ContainsFunc(o.Unlisted, func(a struct {
			Repo string `json:"repo"`
		}) bool {
			return a.Repo == r.name
		})
		if unlisted == r.listed {
			problems = append(problems, fmt.Sprintf("%s is unlisted: %v", r.name, unlisted))
		}
	}
	return problems
}

// checkRepo returns what the status gets wrong about a repo.
func (w *walk) checkRepo(r *repo, t repoStatus, since time.Time) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	// One that waits for a repo that cannot be read is at it nearly all the time.
	if !t.LastSync.After(since) || t.Phase != nil && !w.world.anyBad() {
		wrong("no sync has ended since")
	}
	if t.State != r.expect.state {
		wrong("state %s instead of %s (error: %s, waits: %s)", t.State, r.expect.state, t.Error, t.Waits)
	}
	head := w.shas[r.name][r.at()]
	if !r.gone && (t.Revision == nil || t.Revision.ID != head) {
		wrong("revision %v instead of commit %d, %s", t.Revision, r.at(), head)
	}
	if state := r.expect.state; (state == stateSynced || state == statePartial) && (t.Applied == nil || t.Applied.ID != head) {
		wrong("applied %v instead of commit %d, %s", t.Applied, r.at(), head)
	}
	if (t.Error == "") != (r.expect.state == stateSynced || r.expect.state == stateSuspended) {
		wrong("error %q with state %s", t.Error, t.State)
	}
	if r.expect.blocked < 0 || w.world.anyBad() {
		return problems
	}
	if (t.PruneHeld != "") != r.expect.held {
		wrong("prune held: %q, but it should be %v", t.PruneHeld, r.expect.held)
	}
	if t.Objects["blocked"] != r.expect.blocked {
		wrong("%d blocked objects instead of %d", t.Objects["blocked"], r.expect.blocked)
	}
	if t.Objects["pending"] != r.expect.pending {
		wrong("%d pending objects instead of %d", t.Objects["pending"], r.expect.pending)
	}
	if n := t.Objects["failed"] + t.Objects["refused"]; n != r.expect.wrong {
		wrong("%d failed and refused objects instead of %d", n, r.expect.wrong)
	}
	for _, state := range []string{"drifted", "conflict"} {
		if t.Objects[state] > 0 {
			wrong("%d objects %s", t.Objects[state], state)
		}
	}
	return problems
}

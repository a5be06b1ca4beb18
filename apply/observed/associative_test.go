package observed

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/test/lab/cluster"
)

// associativeSeed is the variable that has TestAssociativeLists draw the keys that it drew in
// a run that failed.
const associativeSeed = "ASSOCIATIVE_SEED"

// TestAssociativeLists applies objects of every built-in kind with lists whose items are
// known by key or by value, and of a CRD with keys of every type, and reads what the API
// server says that we own in every way in which the daemon reads it: in the answer to the
// PATCH, by GET, LIST and WATCH, of metadata and of whole objects, before and after others
// have written. It is the same each time, although the texts are not.
func TestAssociativeLists(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(associativeSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", associativeSeed, seed)
	d := draw{rand.New(rand.NewPCG(seed, 0))}
	o := newOwnership(t)
	for round := range 2 {
		objects := d.objects()
		for _, kind := range slices.SortedFunc(maps.Keys(objects), func(a, b [2]string) int { return strings.Compare(b[1], a[1]) }) { // ServiceAccount before Pod
			object := with(with(objects[kind], "apiVersion", kind[0]), "kind", kind[1])
			o.check(object, d.metadata(), round)
		}
	}
	o.check(gadgetDefinition(), fields{"name": "gadgets.example.com"}, 0)
	o.awaitKind("example.com/v1", "Gadget")
	for round := range 10 {
		o.check(d.gadget(), d.metadata(), round)
	}
	o.covered()
	if o.reordered == 0 {
		t.Error("no text came in another order: these objects prove nothing")
	}
	t.Logf("%d objects, %d readings, %d of them with another text than the PATCH's answer", o.objects, o.readings, o.reordered)
}

// ownership is what a test finds out about what the API server says that we own.
type ownership struct {
	t         *testing.T
	client    *kube.Client
	discovery *discovery.DiscoveryClient
	kinds     *kube.Kinds
	lists     map[schema.GroupVersionKind]map[string]bool // that were applied

	objects, readings, reordered int
}

func newOwnership(t *testing.T) *ownership {
	t.Helper()
	servers := cluster.Start(t)
	config := rest.CopyConfig(servers.Config())
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	o := &ownership{
		t: t, discovery: discovery.NewDiscoveryClientForConfigOrDie(config), client: clientOf(t, config, transport),
		lists: map[schema.GroupVersionKind]map[string]bool{},
	}
	o.lookAtKinds()
	return o
}

func clientOf(t *testing.T, config *rest.Config, transport *http.Client) *kube.Client {
	t.Helper()
	c, err := kube.NewClient(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lookAtKinds asks what is served.
func (o *ownership) lookAtKinds() {
	o.t.Helper()
	kinds, err := kube.Discover(o.t.Context(), discovery.ToDiscoveryInterfaceWithContext(o.discovery))
	if err != nil {
		o.t.Fatal(err)
	}
	o.kinds = kinds
}

// awaitKind waits until a new kind is served.
func (o *ownership) awaitKind(apiVersion, kind string) {
	o.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		o.lookAtKinds()
		if _, served := o.kinds.Served[schema.FromAPIVersionAndKind(apiVersion, kind)]; served {
			return
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("%s is not served", kind)
		}
	}
}

// check applies an object and reads it in every way.
func (o *ownership) check(content, metadata fields, round int) {
	o.t.Helper()
	object := o.object(content, metadata, round)
	served, known := o.kinds.Served[object.GroupVersionKind()]
	if !known {
		o.t.Errorf("%s is not served", object.GroupVersionKind())
		return
	}
	if served.Namespaced {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	answer, err := o.client.Apply(ctx, served.GVR, object, kube.FieldManager)
	if err != nil {
		o.t.Errorf("%s: %v", object.GetKind(), err)
		return
	}
	o.objects++
	r := &readings{o: o, object: object, served: served, text: string(ownFields(answer.Live.GetManagedFields()))}
	if r.want = readEntry([]byte(r.text)); !r.want.sound {
		o.t.Errorf("%s: the answer's entry cannot be read: %s", object.GetKind(), r.text)
		return
	}
	o.note(object.GroupVersionKind(), r.want.entry)
	r.watched(ctx)
	r.read(ctx)
	again, err := o.client.Apply(ctx, served.GVR, object, kube.FieldManager)
	if err != nil {
		o.t.Fatal(err)
	}
	r.compare("second PATCH", again.Live)
}

// object returns what to apply.
func (o *ownership) object(content, metadata fields, round int) *unstructured.Unstructured {
	o.t.Helper()
	text, err := yaml.Marshal(with(content, "metadata", metadata))
	if err != nil {
		o.t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		o.t.Fatal(err)
	}
	if object.GetName() == "" {
		object.SetName(fmt.Sprintf("%s%d", strings.ToLower(object.GetKind()), round))
	}
	if object.GetKind() == "ServiceAccount" { // which no controller makes here
		object.SetName("default")
	}
	object.SetLabels(map[string]string{manifest.PartOfLabel: "test"})
	return object
}

// readings are the ways to read one object.
type readings struct {
	o      *ownership
	object *unstructured.Unstructured
	served kube.ServedKind
	text   string  // of the PATCH's answer
	want   reading // of it
}

// read reads the object by GET and LIST.
func (r *readings) read(ctx context.Context) {
	r.o.t.Helper()
	gvr, ns, name := r.served.GVR, r.object.GetNamespace(), r.object.GetName()
	meta, err := r.o.client.GetMetadata(ctx, gvr, ns, name)
	r.got("GET of metadata", meta, err)
	whole, err := r.o.client.Get(ctx, gvr, ns, name)
	r.got("GET", whole, err)
	for how, list := range map[string]func(context.Context, metav1.ListOptions, func(metav1.Object)) (metav1.ListInterface, error){
		"LIST of metadata": r.o.client.FollowMetadata(gvr, "").List, "LIST": r.o.client.FollowObjects(r.kind(), gvr, "").List,
	} {
		found := 0
		_, err := list(ctx, metav1.ListOptions{LabelSelector: manifest.PartOfLabel}, func(live metav1.Object) {
			if live.GetName() == name {
				found++
				r.compare(how, live)
			}
		})
		if err != nil || found != 1 {
			r.o.t.Errorf("%s %s %s: found %d times: %v", how, r.object.GetKind(), name, found, err)
		}
	}
}

// watched watches the object while others write it.
func (r *readings) watched(ctx context.Context) {
	r.o.t.Helper()
	events := map[string]watch.Interface{}
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + r.object.GetName()}
	for how, open := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"WATCH of metadata": r.o.client.FollowMetadata(r.served.GVR, "").Watch, "WATCH": r.o.client.FollowObjects(r.kind(), r.served.GVR, "").Watch,
	} {
		w, err := open(ctx, options)
		if err != nil {
			r.o.t.Fatal(err)
		}
		defer w.Stop()
		events[how] = w
		r.next(ctx, how, w)
	}
	for i := range 2 {
		note := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/note":"%d"}}}`, i)
		answer, err := r.o.client.Patch(ctx, r.served.GVR, r.object.GetNamespace(), r.object.GetName(), types.MergePatchType, note, metav1.PatchOptions{FieldManager: "kubectl-annotate"})
		if err != nil {
			r.o.t.Fatalf("annotate %s: %v", r.object.GetKind(), err)
		}
		r.compare("another's PATCH", answer.Live)
		for how, w := range events {
			r.next(ctx, how, w)
		}
	}
}

// next compares what the next event says.
func (r *readings) next(ctx context.Context, how string, w watch.Interface) {
	r.o.t.Helper()
	select {
	case event := <-w.ResultChan():
		live, ok := event.Object.(metav1.Object)
		if !ok {
			r.o.t.Fatalf("%s %s: %v", how, r.object.GetKind(), event)
		}
		r.compare(how, live)
	case <-ctx.Done():
		r.o.t.Fatalf("%s %s: no event", how, r.object.GetKind())
	}
}

func (r *readings) kind() schema.GroupKind { return r.object.GroupVersionKind().GroupKind() }

// got compares what an answer says.
func (r *readings) got(how string, live metav1.Object, err error) {
	r.o.t.Helper()
	if err != nil {
		r.o.t.Errorf("%s %s: %v", how, r.object.GetKind(), err)
		return
	}
	r.compare(how, live)
}

// compare holds what we own by one reading against the PATCH's answer.
func (r *readings) compare(how string, live metav1.Object) {
	r.o.t.Helper()
	text := ownFields(live.GetManagedFields())
	r.o.readings++
	if string(text) != r.text {
		r.o.reordered++
	}
	if got := readEntry(text); got != r.want {
		r.o.t.Errorf("%s %s: we own\n%s\nand in the answer to the PATCH\n%s", how, r.object.GetKind(), got.entry.Value(), r.want.entry.Value())
	}
}

// note notes which lists were applied.
func (o *ownership) note(gvk schema.GroupVersionKind, owned Entry) {
	o.t.Helper()
	set, err := FieldsOf(owned.Value())
	if err != nil {
		o.t.Fatal(err)
	}
	if o.lists[gvk] == nil {
		o.lists[gvk] = map[string]bool{}
	}
	set.Iterate(func(path fieldpath.Path) {
		text := ""
		for _, element := range path {
			if element.FieldName != nil {
				text += "." + *element.FieldName
				continue
			}
			text += "[]"
			o.lists[gvk][text] = true
		}
	})
}

// covered checks that no associative list of the API server's own kinds was forgotten.
func (o *ownership) covered() {
	o.t.Helper()
	all := associativeLists(o.t, o.discovery, o.kinds.Served)
	if len(all) < 40 {
		o.t.Errorf("the API server's OpenAPI documents tell of %d kinds only", len(all))
	}
	seen := 0
	for gvk, lists := range all {
		if gvk.Group == "example.com" || !slices.ContainsFunc(lists, func(path string) bool { return !strings.HasPrefix(path, ".metadata.") }) {
			continue
		}
		for _, path := range lists {
			_, excused := o.excused(path)
			if seen++; !excused && !o.lists[gvk][path] {
				o.t.Errorf("%s %s was not tried", gvk.Kind, path)
			}
			if excused && o.lists[gvk][path] {
				o.t.Errorf("%s %s can be declared after all", gvk.Kind, path)
			}
		}
	}
	o.t.Logf("%d kinds, %d lists of those that have their own", len(all), seen)
}

// excused tells why a list cannot be declared.
func (o *ownership) excused(path string) (why string, excused bool) {
	for part, why := range undeclared() {
		if strings.Contains(path, "."+part) {
			return why, true
		}
	}
	return "", false
}

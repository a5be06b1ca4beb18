package inventory

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

var configMapKind = schema.GroupKind{Kind: "ConfigMap"}

// labelled makes the metadata of a ConfigMap that a set has applied.
func labelled(name, set string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "1", Labels: map[string]string{manifest.PartOfLabel: set},
	}}
}

// nameOf is a ConfigMap's identity.
func nameOf(name string) manifest.ID {
	return manifest.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}
}

// seeing is a tracker that sees these ConfigMaps, and the discovery that it goes by.
func seeing(t testing.TB, live ...*metav1.PartialObjectMetadata) (*Tracker, *kube.Kinds) {
	t.Helper()
	is := serving(configMapKind, "v1")
	tracked := NewTracker(&Watches{ctx: t.Context()}, nil, nil)
	tracked.Use(&User{}, is, Scope{Kinds: map[schema.GroupKind]bool{configMapKind: true}})
	store := follow.NewStore("configmaps", func(o metav1.Object) (manifest.ID, observed.Member) {
		m := observed.NewMember(configMapKind, tracked.kinds[configMapKind].served.GVR, o)
		return m.ID, m
	}, func(manifest.ID, metav1.Object) {}).Grouped(setOf)
	for _, object := range live {
		store.Seen(object)
	}
	store.Current("1")
	tracked.kinds[configMapKind].views[""] = &view{Store: store, stop: func() {}, regained: func() {}}
	return tracked, is
}

// TestInventory has a plan find what it needs to know of, whether that is watched or
// listed, and nothing else.
func TestInventory(t *testing.T) {
	t.Parallel()
	live := []*metav1.PartialObjectMetadata{
		labelled("ours", "us"), labelled("ours-left", "us"), labelled("theirs", "them"), labelled("theirs-declared", "them"), labelled("theirs-deleting", "them"),
	}
	tests := map[string]struct {
		of   Interest
		want []string
	}{
		"nothing declared": {Interest{Set: "us"}, []string{"ours", "ours-left"}},
		"declared":         {Interest{Set: "us", Declared: map[manifest.ID]bool{nameOf("ours"): true, nameOf("absent"): true}}, []string{"ours", "ours-left"}},
		"declared, and another's": {
			Interest{Set: "us", Declared: map[manifest.ID]bool{nameOf("ours"): true, nameOf("theirs-declared"): true}},
			[]string{"ours", "ours-left", "theirs-declared"},
		},
		"being deleted, and another's by now": {
			Interest{Set: "us", Deleting: map[manifest.ID]bool{nameOf("theirs-deleting"): true}},
			[]string{"ours", "ours-left", "theirs-deleting"},
		},
		"no set": {Interest{Set: "no one"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracked, is := seeing(t, live...)
			watched, err := tracked.Look(t.Context(), &User{}, Scope{Kinds: map[schema.GroupKind]bool{configMapKind: true}}, is, test.of)
			if err != nil {
				t.Fatal(err)
			}
			listed := newInventory(test.of)
			listed.Members = map[manifest.ID]observed.Member{}
			visit := listed.visit(configMapKind, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
			for _, object := range live {
				visit(object)
			}
			for how, found := range map[string]*Inventory{"watched": watched, "listed": listed} {
				var got []string
				for id := range found.Members {
					got = append(got, id.Name)
				}
				if slices.Sort(got); !slices.Equal(got, test.want) {
					t.Errorf("%s: found %v, want %v", how, got, test.want)
				}
			}
			if !maps.EqualFunc(watched.Members, listed.Members, func(a, b observed.Member) bool { return a.UID == b.UID && a.Set == b.Set }) {
				t.Error("a watch and a list differ")
			}
		})
	}
}

// TestPlansBesideOthers plans many sets beside the members of others, and has neither what
// a plan allocates nor what it keeps grow with the number of these.
func TestPlansBesideOthers(t *testing.T) {
	const sets = 500
	cost := func(others int) (allocated, kept uint64) {
		live := make([]*metav1.PartialObjectMetadata, 0, others+sets)
		for i := range others {
			live = append(live, labelled(fmt.Sprintf("theirs-%d", i), fmt.Sprintf("them-%d", i%100)))
		}
		for i := range sets {
			live = append(live, labelled(fmt.Sprintf("ours-%d", i), fmt.Sprintf("us-%d", i)))
		}
		tracked, is := seeing(t, live...)
		in := Scope{Kinds: map[schema.GroupKind]bool{configMapKind: true}}
		found := make([]*Inventory, sets)
		before := memoryNow()
		for i := range found {
			var err error
			of := Interest{Set: fmt.Sprintf("us-%d", i), Declared: map[manifest.ID]bool{nameOf(fmt.Sprintf("ours-%d", i)): true, nameOf("theirs-1"): true}}
			if found[i], err = tracked.Look(t.Context(), &User{}, in, is, of); err != nil {
				t.Fatal(err)
			}
		}
		after := memoryNow()
		runtime.KeepAlive(found)
		runtime.KeepAlive(tracked)
		return after.TotalAlloc - before.TotalAlloc, max(after.HeapAlloc, before.HeapAlloc) - before.HeapAlloc
	}
	fewAllocated, fewKept := cost(10)
	manyAllocated, manyKept := cost(10_000)
	// A plan that copied what there is of others would take more than 2 MB, and 1 GB in all.
	const slack = 1 << 20
	if manyAllocated > 2*fewAllocated+slack {
		t.Errorf("%d plans allocate %d KB beside 10 objects of others, and %d KB beside 10,000", sets, fewAllocated>>10, manyAllocated>>10)
	}
	if manyKept > 2*fewKept+slack {
		t.Errorf("%d plans keep %d KB beside 10 objects of others, and %d KB beside 10,000", sets, fewKept>>10, manyKept>>10)
	}
}

// memoryNow tells what is used and was allocated, with nothing in it that is garbage.
func memoryNow() (now runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&now)
	return now
}

// BenchmarkLook has one of 500 sets look at what it has beside 10,000 members of others.
func BenchmarkLook(b *testing.B) {
	live := make([]*metav1.PartialObjectMetadata, 0, 10_000)
	for i := range cap(live) {
		live = append(live, labelled(fmt.Sprintf("theirs-%d", i), fmt.Sprintf("them-%d", i%500)))
	}
	tracked, is := seeing(b, live...)
	in := Scope{Kinds: map[schema.GroupKind]bool{configMapKind: true}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tracked.Look(b.Context(), &User{}, in, is, Interest{Set: "them-7"}); err != nil {
			b.Fatal(err)
		}
	}
}

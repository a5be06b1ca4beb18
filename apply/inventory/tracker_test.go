package inventory

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/test/lab/transport"
)

// TestForbiddenAtOnce has what may not be seen refused as soon as it is asked for, often
// before the tracker has gone on to anything else: that view ends, and nothing else.
func TestForbiddenAtOnce(t *testing.T) {
	t.Parallel()
	const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	refusing, err := kube.NewClient(&rest.Config{Host: "http://api.invalid", QPS: -1}, &http.Client{
		Transport: transport.Answers(func(*http.Request) (int, string) { return http.StatusForbidden, forbidden }),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := NewWatches(ctx, WatchOptions{Own: refusing, Limited: refusing, Log: zerolog.Nop()})
	secrets := schema.GroupKind{Kind: "Secret"}
	tracked := NewTracker(s, nil, func(manifest.ID, metav1.Object) {})
	tracked.Use(&User{}, serving(secrets, "v1"), Scope{Kinds: map[schema.GroupKind]bool{secrets: true}})
	for range 500 {
		if err := tracked.view(secrets, "shop", true).Await(ctx, time.Minute, apierrors.IsForbidden); !apierrors.IsForbidden(err) {
			t.Fatalf("got %v", err)
		}
	}
	ended := make(chan struct{})
	go func() {
		s.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("what was forbidden is still being asked for")
	}
	cancel()
}

// serving is the discovery of an API server that serves one kind, in one version.
func serving(gk schema.GroupKind, version string) *kube.Kinds {
	gvk := gk.WithVersion(version)
	gvr := gvk.GroupVersion().WithResource(strings.ToLower(gk.Kind) + "s")
	return &kube.Kinds{
		Served:    map[schema.GroupVersionKind]kube.ServedKind{gvk: {GVR: gvr, Namespaced: true}},
		Preferred: map[schema.GroupKind]schema.GroupVersionKind{gk: gvk},
	}
}

// wakened is a set that counts how often it is woken.
func wakened() (s *User, times *int) {
	times = new(int)
	return &User{Wake: func() { *times++ }}, times
}

// TestDroppedMeanwhile looks at a kind that another set, going by older discovery, has
// just had followed no more: no one knows what there is of it, and whoever uses it looks
// again.
func TestDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	used := map[schema.GroupKind]bool{widgets: true}
	now, older := serving(widgets, "v1"), &kube.Kinds{}
	tracked := NewTracker(&Watches{ctx: t.Context()}, nil, nil)
	s, woken := wakened()
	tracked.Use(s, now, Scope{Kinds: used})
	tracked.Use(&User{}, older, Scope{Kinds: used})
	found, err := tracked.Look(t.Context(), s, Scope{Kinds: used}, now, Interest{})
	if err != nil {
		t.Fatal(err)
	}
	if found.Blind[widgets] == nil {
		t.Error("a kind that no one looked at counts as one without objects")
	}
	if *woken != 1 {
		t.Errorf("woken %d times, want 1", *woken)
	}
}

// TestSeenWhole has a kind without a status seen whole for as long as a set has annotated an object of
// it. The other sets look again each time.
func TestSeenWhole(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	used := map[schema.GroupKind]bool{widgets: true}
	is := serving(widgets, "v1")
	tracked := NewTracker(&Watches{ctx: t.Context()}, nil, nil)
	one, oneWoken := wakened()
	two, twoWoken := wakened()
	for _, step := range []struct {
		name     string
		do       func()
		whole    bool
		one, two int
	}{
		{"both plan", func() { tracked.Use(one, is, Scope{Kinds: used}); tracked.Use(two, is, Scope{Kinds: used}) }, false, 0, 0},
		{"one annotates an object", func() { tracked.Use(one, is, Scope{Kinds: used, Gated: used}) }, true, 0, 1},
		{"the other plans for that", func() { tracked.Use(two, is, Scope{Kinds: used}) }, true, 0, 1},
		{"the other annotates one as well", func() { tracked.Use(two, is, Scope{Kinds: used, Gated: used}) }, true, 0, 1},
		{"one annotates none any more", func() { tracked.Use(one, is, Scope{Kinds: used}) }, true, 0, 1},
		{"nor does the other", func() { tracked.Use(two, is, Scope{Kinds: used}) }, false, 1, 1},
	} {
		step.do()
		health, whole := tracked.Sees(widgets)
		if health || whole != step.whole || *oneWoken != step.one || *twoWoken != step.two {
			t.Errorf("%s: health by kind %t, whole %t, woken %d and %d times; want false, %t, %d and %d", step.name, health, whole, *oneWoken, *twoWoken, step.whole, step.one, step.two)
		}
	}
}

// TestOtherVersion has a kind served in another version: all who use it look at it there,
// once, and no one has itself woken by its own plan.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	used := map[schema.GroupKind]bool{widgets: true}
	is := serving(widgets, "v1")
	tracked := NewTracker(&Watches{ctx: t.Context()}, func(context.Context) (*kube.Kinds, error) { return is, nil }, nil)
	one, oneWoken := wakened()
	two, twoWoken := wakened()
	steps := []struct {
		name     string
		do       func()
		one, two int
	}{
		{"both plan", func() { tracked.Use(one, is, Scope{Kinds: used}); tracked.Use(two, is, Scope{Kinds: used}) }, 0, 0},
		{"a watch ends, and all is as it was", func() { tracked.lookAnew(widgets) }, 0, 0},
		{"a watch ends, since the version is gone", func() { is = serving(widgets, "v2"); tracked.lookAnew(widgets) }, 1, 1},
		{"both plan for that", func() { tracked.Use(one, is, Scope{Kinds: used}); tracked.Use(two, is, Scope{Kinds: used}) }, 1, 1},
		{"a plan finds yet another version", func() { is = serving(widgets, "v3"); tracked.Use(one, is, Scope{Kinds: used}) }, 1, 2},
		{"the other plans for that", func() { tracked.Use(two, is, Scope{Kinds: used}) }, 1, 2},
		{"the kind is gone", func() { is = &kube.Kinds{}; tracked.lookAnew(widgets) }, 2, 3},
		{"both plan without it", func() { tracked.Use(one, is, Scope{Kinds: used}); tracked.Use(two, is, Scope{Kinds: used}) }, 2, 3},
		{"no one uses it when its watch ends", func() {
			tracked.Release(one)
			tracked.Release(two)
			is = serving(widgets, "v4")
			tracked.lookAnew(widgets)
		}, 2, 3},
	}
	for _, step := range steps {
		if step.do(); *oneWoken != step.one || *twoWoken != step.two {
			t.Fatalf("%s: woken %d and %d times by now, want %d and %d", step.name, *oneWoken, *twoWoken, step.one, step.two)
		}
	}
	if len(tracked.kinds) > 0 {
		t.Error("what no one uses is followed")
	}
}

// TestMissedAndRegained has a kind seen again just before, or after, a plan that gave up
// waiting for it has said so: either way the set is synced once more.
func TestMissedAndRegained(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	tests := map[string]struct {
		do    func(tracked *Tracker, v *view)
		woken int
	}{
		"not seen":       {func(tracked *Tracker, v *view) { tracked.miss(widgets, v) }, 0},
		"seen":           {func(_ *Tracker, v *view) { v.Current("1") }, 0},
		"seen after it":  {func(tracked *Tracker, v *view) { tracked.miss(widgets, v); v.Current("1") }, 1},
		"seen before it": {func(tracked *Tracker, v *view) { v.Current("1"); tracked.miss(widgets, v) }, 1},
		"seen once more": {func(tracked *Tracker, v *view) { v.Current("1"); tracked.miss(widgets, v); v.Current("2") }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracked := NewTracker(&Watches{ctx: t.Context()}, nil, nil)
			s, woken := wakened()
			tracked.Use(s, serving(widgets, "v1"), Scope{Kinds: map[schema.GroupKind]bool{widgets: true}})
			test.do(tracked, &view{Store: follow.NewStore[manifest.ID, observed.Member]("widgets", nil, nil), regained: func() { tracked.regained(widgets) }})
			if *woken != test.woken {
				t.Errorf("woken %d times, want %d", *woken, test.woken)
			}
		})
	}
}

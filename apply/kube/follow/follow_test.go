package follow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// object makes the metadata of an object.
func object(name, uid, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// newStore returns a store that keeps versions, and what it has reported, as "name version".
func newStore() (*Store[string, string], *[]string) {
	reported := &[]string{}
	reduce := func(o metav1.Object) (string, string) { return o.GetName(), o.GetResourceVersion() }
	return NewStore("things", reduce, func(name string, o metav1.Object) {
		if o == nil {
			*reported = append(*reported, name+" gone")
			return
		}
		*reported = append(*reported, name+" "+o.GetResourceVersion())
	}), reported
}

// kept returns what a store keeps.
func kept(s *Store[string, string]) map[string]string {
	all := map[string]string{}
	s.Each(func(name, version string) { all[name] = version })
	return all
}

func TestStore(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do       func(*Store[string, string])
		kept     map[string]string
		reported []string
	}{
		"what is seen is kept": {
			do:   func(s *Store[string, string]) { s.Seen(object("a", "1", "5")); s.Seen(object("a", "1", "6")) },
			kept: map[string]string{"a": "6"}, reported: []string{"a 5", "a 6"},
		},
		"an answer to us is newer than an event that comes after it": {
			do:   func(s *Store[string, string]) { s.Put(object("a", "1", "9")); s.Seen(object("a", "1", "8")) },
			kept: map[string]string{"a": "9"},
		},
		"versions are numbers": {
			do:   func(s *Store[string, string]) { s.Put(object("a", "1", "99")); s.Seen(object("a", "1", "100")) },
			kept: map[string]string{"a": "100"}, reported: []string{"a 100"},
		},
		"gone": {
			do:   func(s *Store[string, string]) { s.Seen(object("a", "1", "5")); s.Gone(object("a", "1", "7")) },
			kept: map[string]string{}, reported: []string{"a 5", "a gone"},
		},
		"the end of one that was made again": {
			do:   func(s *Store[string, string]) { s.Put(object("a", "2", "9")); s.Gone(object("a", "1", "8")) },
			kept: map[string]string{"a": "9"},
		},
		"what a complete list has not is gone": {
			do: func(s *Store[string, string]) {
				s.Seen(object("a", "1", "5"))
				s.Seen(object("b", "2", "6"))
				s.Relist()
				s.Seen(object("b", "2", "6"))
				s.Current("7")
			},
			kept: map[string]string{"b": "6"}, reported: []string{"a 5", "b 6", "a gone"},
		},
		"a list that breaks off takes nothing away": {
			do: func(s *Store[string, string]) {
				s.Seen(object("a", "1", "5"))
				s.Relist()
				s.Lost(errors.New("cut"))
			},
			kept: map[string]string{"a": "5"}, reported: []string{"a 5"},
		},
		"an answer that comes while a list is under way is newer than the list": {
			do: func(s *Store[string, string]) {
				s.Seen(object("a", "1", "5"))
				s.Relist()
				s.Put(object("a", "1", "9"))
				s.Seen(object("a", "1", "5"))
				s.Current("8")
			},
			kept: map[string]string{"a": "9"}, reported: []string{"a 5"},
		},
		"what was written while it listed stays": {
			do: func(s *Store[string, string]) {
				s.Relist()
				s.Put(object("a", "1", "5"))
				s.Current("4")
			},
			kept: map[string]string{"a": "5"},
		},
		"an answer that arrives after the end of its object": {
			do: func(s *Store[string, string]) {
				s.Seen(object("a", "1", "5"))
				s.Gone(object("a", "1", "7"))
				s.Put(object("a", "1", "6"))
			},
			kept: map[string]string{}, reported: []string{"a 5", "a gone"},
		},
		"an answer that arrives after a list without its object": {
			do: func(s *Store[string, string]) {
				s.Relist()
				s.Current("7")
				s.Put(object("a", "1", "6"))
				s.Put(object("b", "2", "8"))
			},
			kept: map[string]string{"b": "8"},
		},
		"an answer that arrives while a list is under way that has its object no more": {
			do: func(s *Store[string, string]) {
				s.Seen(object("a", "1", "5"))
				s.Relist()
				s.Put(object("a", "1", "6"))
				s.Current("7")
			},
			kept: map[string]string{}, reported: []string{"a 5", "a gone"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, reported := newStore()
			test.do(s)
			if got := kept(s); !maps.Equal(got, test.kept) {
				t.Errorf("kept %v, want %v", got, test.kept)
			}
			if !slices.Equal(*reported, test.reported) {
				t.Errorf("reported %v, want %v", *reported, test.reported)
			}
		})
	}
}

// A store that is not current says so to those who wait, and why.
func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStore()
		never := func(error) bool { return false }
		if err := s.Await(t.Context(), time.Second, never); err == nil || !strings.Contains(err.Error(), "things") {
			t.Errorf("nothing heard yet: %v", err)
		}
		refused := errors.New("connection refused")
		s.Lost(refused)
		if err := s.Await(t.Context(), time.Second, never); !errors.Is(err, refused) {
			t.Errorf("lost: %v", err)
		}
		begun := time.Now()
		if err := s.Await(t.Context(), time.Minute, func(error) bool { return true }); !errors.Is(err, refused) || time.Since(begun) > 0 {
			t.Errorf("settled: %v after %v", err, time.Since(begun))
		}
		time.AfterFunc(time.Second, func() { s.Current("9") })
		if err := s.Await(t.Context(), time.Minute, never); err != nil {
			t.Errorf("current after a second: %v", err)
		}
	})
}

// script is a resource that answers as it is set to.
type script struct {
	lists   []func(visit func(metav1.Object)) (metav1.ListMeta, error)
	watches []func() (watch.Interface, error)
	from    []string // the versions that watches began with
}

func (s *script) Fits(runtime.Object) error { return nil }

func (s *script) List(_ context.Context, _ metav1.ListOptions, visit func(metav1.Object)) (metav1.ListInterface, error) {
	if len(s.lists) == 0 {
		return nil, errors.New("no more lists")
	}
	next := s.lists[0]
	s.lists = s.lists[1:]
	list, err := next(visit)
	return &list, err
}

func (s *script) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if len(s.watches) == 0 {
		return nil, errors.New("no more watches")
	}
	s.from = append(s.from, options.ResourceVersion)
	next := s.watches[0]
	s.watches = s.watches[1:]
	return next()
}

// events is a watch that delivers events and ends after a while.
func events(lasts time.Duration, all ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		w := watch.NewFake()
		go func() {
			for _, e := range all {
				w.Action(e.Type, e.Object)
			}
			time.Sleep(lasts)
			w.Stop()
		}()
		return w, nil
	}
}

func list(version, more string, objects ...*metav1.PartialObjectMetadata) func(func(metav1.Object)) (metav1.ListMeta, error) {
	return func(visit func(metav1.Object)) (metav1.ListMeta, error) {
		for _, o := range objects {
			visit(o)
		}
		return metav1.ListMeta{ResourceVersion: version, Continue: more}, nil
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	gone := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}
	tests := map[string]struct {
		script script
		kept   map[string]string
		from   []string // versions from which was watched
	}{
		"pages, then changes": {
			script: script{
				lists: []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "more", object("a", "1", "3")), list("10", "", object("b", "2", "4"))},
				watches: []func() (watch.Interface, error){events(time.Hour,
					watch.Event{Type: watch.Modified, Object: object("a", "1", "11")}, watch.Event{Type: watch.Deleted, Object: object("b", "2", "12")})},
			},
			kept: map[string]string{"a": "11"}, from: []string{"10"},
		},
		"a watch that ends is taken up where it was": {
			script: script{
				lists: []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", ""), list("20", "")},
				watches: []func() (watch.Interface, error){
					events(time.Minute, watch.Event{Type: watch.Added, Object: object("a", "1", "11")}, watch.Event{Type: watch.Bookmark, Object: object("", "", "20")}),
					events(time.Hour, watch.Event{Type: watch.Added, Object: object("b", "2", "21")}),
				},
			},
			kept: map[string]string{"a": "11", "b": "21"}, from: []string{"10", "20"},
		},
		"a version that is forgotten is listed anew": {
			script: script{
				lists: []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "3")), list("30", "", object("b", "2", "25"))},
				watches: []func() (watch.Interface, error){
					events(0, watch.Event{Type: watch.Error, Object: gone}), events(time.Hour),
				},
			},
			kept: map[string]string{"b": "25"}, from: []string{"10", "30"},
		},
		"an event older than the list is listed anew": {
			script: script{
				lists: []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "3")), list("20", "", object("a", "1", "15"))},
				watches: []func() (watch.Interface, error){
					events(time.Hour, watch.Event{Type: watch.Modified, Object: object("a", "1", "7")}), events(time.Hour),
				},
			},
			kept: map[string]string{"a": "15"}, from: []string{"10", "20"},
		},
		"so is a bookmark": {
			script: script{
				lists: []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "3")), list("20", "", object("a", "1", "15"))},
				watches: []func() (watch.Interface, error){
					events(time.Hour, watch.Event{Type: watch.Bookmark, Object: object("", "", "7")}), events(time.Hour),
				},
			},
			kept: map[string]string{"a": "15"}, from: []string{"10", "20"},
		},
		"a second event of the same version tells nothing": {
			script: script{
				lists: []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "")},
				watches: []func() (watch.Interface, error){events(time.Hour,
					watch.Event{Type: watch.Added, Object: object("a", "1", "11")}, watch.Event{Type: watch.Added, Object: object("a", "1", "11")})},
			},
			kept: map[string]string{"a": "11"}, from: []string{"10"},
		},
		"what has no identity was not sent by an API server": {
			script: script{
				lists: []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "3")), list("12", "", object("a", "1", "3"))},
				watches: []func() (watch.Interface, error){
					events(time.Hour, watch.Event{Type: watch.Deleted, Object: object("a", "", "11")}), events(time.Hour),
				},
			},
			kept: map[string]string{"a": "3"}, from: []string{"10", "12"},
		},
		"a list without a version is none": {
			script: script{
				lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("", ""), list("12", "", object("a", "1", "3"))},
				watches: []func() (watch.Interface, error){events(time.Hour)},
			},
			kept: map[string]string{"a": "3"}, from: []string{"12"},
		},
		"nor is one that leads nowhere": {
			script: script{
				lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "more", object("a", "1", "3")), list("10", "more"), list("12", "", object("a", "1", "3"))},
				watches: []func() (watch.Interface, error){events(time.Hour)},
			},
			kept: map[string]string{"a": "3"}, from: []string{"12"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				s, _ := newStore()
				done := make(chan struct{})
				go func() { Follow(ctx, &test.script, metav1.ListOptions{}, s); close(done) }()
				time.Sleep(3 * time.Minute)
				if got := kept(s); !maps.Equal(got, test.kept) {
					t.Errorf("kept %v, want %v", got, test.kept)
				}
				if current, _, problem := s.State(); !current {
					t.Errorf("not current: %v", problem)
				}
				cancel()
				<-done
				if !slices.Equal(test.script.from, test.from) {
					t.Errorf("watched from %v, want %v", test.script.from, test.from)
				}
				time.Sleep(2 * time.Hour) // for the fake watches to end
			})
		})
	}
}

// An API server that has gone back to an earlier state is noticed when a watch was cut,
// and when it lists.
func TestWentBack(t *testing.T) {
	t.Parallel()
	tests := map[string]script{
		"after a cut": {
			lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", ""), list("8", "")},
			watches: []func() (watch.Interface, error){events(time.Minute)},
		},
		"in a list": {
			lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", ""), list("8", "")},
			watches: []func() (watch.Interface, error){events(0, watch.Event{Type: watch.Error, Object: &metav1.Status{Code: 500}})},
		},
		"an object, after a cut": {
			lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "9")), list("20", "", object("a", "1", "7"))},
			watches: []func() (watch.Interface, error){events(time.Minute)},
		},
		"an object, in a list": {
			lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "9")), list("20", "", object("a", "1", "7"))},
			watches: []func() (watch.Interface, error){events(0, watch.Event{Type: watch.Error, Object: &metav1.Status{Code: 410}})},
		},
		"an object that a watch has reported": {
			lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "9")), list("20", "", object("a", "1", "9"))},
			watches: []func() (watch.Interface, error){events(time.Minute, watch.Event{Type: watch.Modified, Object: object("a", "1", "12")})},
		},
		"behind what a watch has reported": {
			lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", ""), list("11", "")},
			watches: []func() (watch.Interface, error){events(time.Minute, watch.Event{Type: watch.Bookmark, Object: object("", "", "12")})},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store, _ := newStore()
				l := &losses{Handler: store, until: ErrWentBack, stop: cancel}
				Follow(ctx, &test, metav1.ListOptions{}, l)
				if !l.found {
					t.Errorf("not noticed: %v", l.all)
				}
				time.Sleep(2 * time.Hour) // for the fake watches to end
			})
		})
	}
}

// What an answer to a write has reported, after a list was made that has the object as it was
// before, shows no restore.
func TestWroteMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store, _ := newStore()
		written := func(visit func(metav1.Object)) (metav1.ListMeta, error) {
			store.Put(object("a", "1", "25"))
			return list("20", "", object("a", "1", "7"))(visit)
		}
		test := script{
			lists:   []func(func(metav1.Object)) (metav1.ListMeta, error){list("10", "", object("a", "1", "7")), written},
			watches: []func() (watch.Interface, error){events(0, watch.Event{Type: watch.Error, Object: &metav1.Status{Code: 410}}), events(time.Hour)},
		}
		l := &losses{Handler: store, until: ErrWentBack, stop: cancel}
		time.AfterFunc(30*time.Minute, cancel)
		Follow(ctx, &test, metav1.ListOptions{}, l)
		if l.found || kept(store)["a"] != "25" {
			t.Errorf("kept %v, lost %v", kept(store), l.all)
		}
		time.Sleep(2 * time.Hour) // for the fake watches to end
	})
}

// losses are what an handler has lost, until it is what was waited for or too much.
type losses struct {
	Handler
	until error
	stop  func()
	found bool
	all   []error
}

func (l *losses) Lost(err error) {
	l.all = append(l.all, err)
	if l.found = errors.Is(err, l.until); l.found || len(l.all) > 10 {
		l.stop()
	}
}

// counted answers every list, and its watches fall silent or fail.
type counted struct {
	lists, watches int
	watch          func(nth int) *watch.FakeWatcher
}

func (c *counted) Fits(runtime.Object) error { return nil }

func (c *counted) List(context.Context, metav1.ListOptions, func(metav1.Object)) (metav1.ListInterface, error) {
	c.lists++
	return &metav1.ListMeta{ResourceVersion: "11"}, nil
}

func (c *counted) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	c.watches++
	return c.watch(c.watches), nil
}

// A watch that is silent is lost: soon where bookmarks are usual, else when its time is
// long over. A server that errs at once is not asked again and again.
func TestFollowPatience(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		watch       func(nth int) *watch.FakeWatcher
		least, most int // lists in an hour
	}{
		"silent after a bookmark": {
			watch: func(int) *watch.FakeWatcher {
				w := watch.NewFakeWithChanSize(1, false)
				w.Action(watch.Bookmark, object("", "", "11"))
				return w
			},
			least: 23, most: 25,
		},
		"silent, and never a bookmark": {
			watch: func(int) *watch.FakeWatcher { return watch.NewFake() },
			least: 6, most: 11,
		},
		"erring at once": {
			watch: func(int) *watch.FakeWatcher {
				w := watch.NewFakeWithChanSize(1, false)
				w.Error(&metav1.Status{Status: metav1.StatusFailure, Message: "what?"})
				return w
			},
			least: 480, most: 1500,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				s, _ := newStore()
				c := &counted{watch: test.watch}
				Follow(ctx, c, metav1.ListOptions{}, s)
				if c.lists < test.least || c.lists > test.most {
					t.Errorf("listed %d times in an hour, want from %d to %d times", c.lists, test.least, test.most)
				}
			})
		})
	}
}

package follow

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Shelf is an Audience that keeps of each object what is needed of it, and knows
// whether that is current. All methods may be called concurrently.
type Shelf[K comparable, T any] struct {
	what   string
	reduce func(metav1.Object) (K, T)
	told   func(K, metav1.Object)

	groupOf func(T) string // nil for a shelf without groups

	mu      sync.Mutex // guards what follows
	items   map[K]item[T]
	groups  map[string]map[K]struct{} // the keys of each group; never an empty group
	heard   string                    // everything up to this version was told
	round   int                       // of listing
	current bool
	since   time.Time // when it became current, or ceased to be
	problem error     // why it is not current
	changed chan struct{}
}

// item is what is kept of an object.
type item[T any] struct {
	value   T
	uid     types.UID
	version string
	round   int // in which it was last seen, which an answer to a write does not count as
}

// NewShelf returns an empty shelf of what, for messages. Reduce says what is kept
// of an object and under which key. Told is called after each change with the
// object, nil if it is gone, from the goroutine that follows and, for what Put
// adds, not at all.
func NewShelf[K comparable, T any](what string, reduce func(metav1.Object) (K, T), told func(key K, object metav1.Object)) *Shelf[K, T] {
	return &Shelf[K, T]{what: what, reduce: reduce, told: told, items: map[K]item[T]{}, since: time.Now(), changed: make(chan struct{})}
}

// Grouped has the shelf know which objects belong together, so that one group can be
// gone through whatever the number of others. GroupOf names the group of what is kept,
// "" for none. It is called on a new shelf, before anything is put there.
func (s *Shelf[K, T]) Grouped(groupOf func(T) string) *Shelf[K, T] {
	s.groupOf, s.groups = groupOf, map[string]map[K]struct{}{}
	return s
}

// Relist implements Audience.
func (s *Shelf[K, T]) Relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
}

// Seen implements Audience.
func (s *Shelf[K, T]) Seen(object metav1.Object) {
	key, value := s.reduce(object)
	if s.keep(key, value, object, true) {
		s.told(key, object)
	}
}

// Known implements Audience.
func (s *Shelf[K, T]) Known(object metav1.Object) string {
	key, _ := s.reduce(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[key].version
}

// Put adds what another answer of the API server said of an object, unless that or
// something newer is known already; such as that it is gone, which may have been heard
// before an answer that was given earlier.
func (s *Shelf[K, T]) Put(object metav1.Object) {
	key, value := s.reduce(object)
	s.keep(key, value, object, false)
}

// keep stores an object, and reports whether it is newer than what was known. What was
// seen itself goes before what an answer to a write said of the same version, which
// may have been less.
func (s *Shelf[K, T]) keep(key K, value T, object metav1.Object, seen bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := object.GetResourceVersion()
	known, there := s.items[key]
	if seen {
		known.round = s.round
		s.hear(version)
	}
	if there && !newer(version, known.version) {
		if seen && known.version == version {
			known.value = value
		}
		s.store(key, known)
		return false
	}
	if !there && !seen && !newer(version, s.heard) {
		return false
	}
	s.store(key, item[T]{value, object.GetUID(), version, known.round})
	return true
}

// store keeps an item, under its group. The caller holds mu.
func (s *Shelf[K, T]) store(key K, kept item[T]) {
	s.leaveGroup(key)
	s.items[key] = kept
	if s.groupOf == nil {
		return
	}
	name := s.groupOf(kept.value)
	if name == "" {
		return
	}
	if s.groups[name] == nil {
		s.groups[name] = map[K]struct{}{}
	}
	s.groups[name][key] = struct{}{}
}

// remove drops an item. The caller holds mu.
func (s *Shelf[K, T]) remove(key K) {
	s.leaveGroup(key)
	delete(s.items, key)
}

// leaveGroup takes an item out of its group. The caller holds mu.
func (s *Shelf[K, T]) leaveGroup(key K) {
	known, there := s.items[key]
	if s.groupOf == nil || !there {
		return
	}
	name := s.groupOf(known.value)
	if delete(s.groups[name], key); len(s.groups[name]) == 0 {
		delete(s.groups, name)
	}
}

// hear notes that everything up to a version was told. The caller holds mu.
func (s *Shelf[K, T]) hear(version string) {
	if s.heard == "" || newer(version, s.heard) {
		s.heard = version
	}
}

// Gone implements Audience.
func (s *Shelf[K, T]) Gone(object metav1.Object) {
	key, _ := s.reduce(object)
	s.mu.Lock()
	s.hear(object.GetResourceVersion())
	known, there := s.items[key]
	// Another object of that name may be known by now, from an answer to us.
	gone := there && (known.uid == object.GetUID() || !newer(known.version, object.GetResourceVersion()))
	if gone {
		s.remove(key)
	}
	s.mu.Unlock()
	if gone {
		s.told(key, nil)
	}
}

// Current implements Audience.
func (s *Shelf[K, T]) Current(version string) {
	s.mu.Lock()
	s.hear(version)
	var missing []K
	for key, known := range s.items {
		if known.round != s.round && !newer(known.version, version) {
			s.remove(key)
			missing = append(missing, key)
		}
	}
	s.become(true, nil)
	s.mu.Unlock()
	for _, key := range missing {
		s.told(key, nil)
	}
}

// Lost implements Audience.
func (s *Shelf[K, T]) Lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.become(false, err)
}

// become notes a change of state. The caller holds mu.
func (s *Shelf[K, T]) become(current bool, problem error) {
	if s.current != current {
		s.current, s.since = current, time.Now()
	}
	s.problem = problem
	close(s.changed)
	s.changed = make(chan struct{})
}

// State tells whether the shelf is current, since when it is or is not, and why
// it is not, if that is known.
func (s *Shelf[K, T]) State() (current bool, since time.Time, problem error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.since, s.problem
}

// Await waits until the shelf is current, for as long as patience at most. Settled
// tells of a problem whether waiting longer is of no use.
func (s *Shelf[K, T]) Await(ctx context.Context, patience time.Duration, settled func(error) bool) error {
	late := time.After(patience)
	for {
		s.mu.Lock()
		current, since, problem, changed := s.current, s.since, s.problem, s.changed
		s.mu.Unlock()
		if current {
			return nil
		}
		if problem != nil && settled(problem) {
			return fmt.Errorf("look for %s: %w", s.what, problem)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			if problem == nil {
				problem = fmt.Errorf("the API server has not answered since %s", since.Format(time.TimeOnly))
			}
			return fmt.Errorf("what there is of %s is not known: %w", s.what, problem)
		}
	}
}

// Get returns what is kept of an object.
func (s *Shelf[K, T]) Get(key K) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, there := s.items[key]
	return known.value, there
}

// Each calls visit with everything that is kept, in no order. Visit must not call
// the shelf.
func (s *Shelf[K, T]) Each(visit func(K, T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, known := range s.items {
		visit(key, known.value)
	}
}

// EachOf calls visit with everything that is kept of one group, in no order. Visit must
// not call the shelf.
func (s *Shelf[K, T]) EachOf(group string, visit func(K, T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.groups[group] {
		visit(key, s.items[key].value)
	}
}

// newer tells whether version a is newer than b, or cannot be compared with it
// (then what comes later counts as newer). Versions of one resource are ordered
// (KEP-5504).
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// older tells whether version a is known to be older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

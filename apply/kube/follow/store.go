package follow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Store is a Handler that keeps of each object what is needed of it, and whether that
// is current. All methods may be called concurrently.
type Store[K comparable, T any] struct {
	what   string
	reduce func(metav1.Object) (K, T)
	notify func(K, metav1.Object)

	groupOf func(T) string    // nil for a store without groups
	same    func(a, b T) bool // reports whether a change does not count; nil for all count

	mu      sync.Mutex // guards what follows
	items   map[K]item[T]
	groups  map[string]map[K]struct{} // the keys of each group; never an empty group
	changes map[string]uint64         // how often something changed, by group; under "" without groups
	recent  map[string][]K            // what changed last in each group since the store became current, the newest last
	seen    string                    // the version up to which all changes were seen
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

// NewStore returns an empty store of what, for messages. Reduce says what is kept
// of an object and under which key. Notify is called after each change with the
// object, nil if it is gone, from the goroutine that follows; not for what Put adds.
func NewStore[K comparable, T any](what string, reduce func(metav1.Object) (K, T), notify func(key K, object metav1.Object)) *Store[K, T] {
	return &Store[K, T]{
		what: what, reduce: reduce, notify: notify,
		items: map[K]item[T]{}, changes: map[string]uint64{}, recent: map[string][]K{}, since: time.Now(), changed: make(chan struct{}),
	}
}

// Grouped has the store index its objects by group, so that a walk through one group costs
// nothing for the others. GroupOf names the group of what is kept, "" for none. Call it on
// a new store, before anything is put there.
func (s *Store[K, T]) Grouped(groupOf func(T) string) *Store[K, T] {
	s.groupOf, s.groups = groupOf, map[string]map[K]struct{}{}
	return s
}

// Ignoring has Changes not count what leaves an object the same, as the function reports
// it. It is called on a new store, before anything is put there.
func (s *Store[K, T]) Ignoring(same func(a, b T) bool) *Store[K, T] {
	s.same = same
	return s
}

// Changes counts the changes of one group, or of all under "" in a store without groups:
// as long as it stays the same, so does what Each or EachOf goes through.
func (s *Store[K, T]) Changes(group string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[group]
}

// maxRecent is how many changes of a group are known by object: more than most commits make
// between two syncs. After more, a group is gone through as a whole.
const maxRecent = 256

// ChangedSince returns which objects of a group have changed since Changes returned a count,
// some more than once. They are not known if too much has changed, or if the store
// was not current in between.
func (s *Store[K, T]) ChangedSince(group string, count uint64) (keys []K, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.changes[group]
	recent := s.recent[group]
	if count > now || now-count > uint64(len(recent)) {
		return nil, false
	}
	return slices.Clone(recent[uint64(len(recent))-(now-count):]), true
}

// Relist implements Handler.
func (s *Store[K, T]) Relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
}

// Seen implements Handler.
func (s *Store[K, T]) Seen(object metav1.Object) {
	key, value := s.reduce(object)
	if s.keep(key, value, object, true) {
		s.notify(key, object)
	}
}

// Known implements Handler.
func (s *Store[K, T]) Known(object metav1.Object) string {
	key, _ := s.reduce(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[key].version
}

// Put adds an object from another answer of the API server, unless that or something
// newer is known: its deletion too, which may be seen before an answer that is older.
func (s *Store[K, T]) Put(object metav1.Object) {
	key, value := s.reduce(object)
	s.keep(key, value, object, false)
}

// keep stores an object, and reports whether it is newer than what was known. Of one
// version, what the watch has seen replaces the answer to a write, which may hold less.
func (s *Store[K, T]) keep(key K, value T, object metav1.Object, seen bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := object.GetResourceVersion()
	known, there := s.items[key]
	if seen {
		known.round = s.round
		s.advance(version)
	}
	if there && !newer(version, known.version) {
		if seen && known.version == version {
			known.value = value
		}
		s.store(key, known)
		return false
	}
	if !there && !seen && !newer(version, s.seen) {
		return false
	}
	s.store(key, item[T]{value, object.GetUID(), version, known.round})
	return true
}

// store keeps an item, under its group. The caller holds mu.
func (s *Store[K, T]) store(key K, kept item[T]) {
	known, there := s.items[key]
	if !there || s.same == nil && known.version != kept.version || s.same != nil && !s.same(known.value, kept.value) {
		s.count(key, known.value, there)
		s.count(key, kept.value, true)
	}
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

// count notes a change of what is kept, if it is kept, in its group. The caller holds mu.
func (s *Store[K, T]) count(key K, value T, kept bool) {
	if !kept {
		return
	}
	group := ""
	if s.groupOf != nil {
		group = s.groupOf(value)
	}
	s.changes[group]++
	if len(s.recent[group]) >= 2*maxRecent {
		s.recent[group] = slices.Clone(s.recent[group][maxRecent:])
	}
	s.recent[group] = append(s.recent[group], key)
}

// remove drops an item. The caller holds mu.
func (s *Store[K, T]) remove(key K) {
	known, there := s.items[key]
	s.count(key, known.value, there)
	s.leaveGroup(key)
	delete(s.items, key)
}

// leaveGroup takes an item out of its group. The caller holds mu.
func (s *Store[K, T]) leaveGroup(key K) {
	known, there := s.items[key]
	if s.groupOf == nil || !there {
		return
	}
	name := s.groupOf(known.value)
	if delete(s.groups[name], key); len(s.groups[name]) == 0 {
		delete(s.groups, name)
	}
}

// advance notes that all changes up to a version were seen. The caller holds mu.
func (s *Store[K, T]) advance(version string) {
	if s.seen == "" || newer(version, s.seen) {
		s.seen = version
	}
}

// Gone implements Handler.
func (s *Store[K, T]) Gone(object metav1.Object) {
	key, _ := s.reduce(object)
	s.mu.Lock()
	s.advance(object.GetResourceVersion())
	known, there := s.items[key]
	// Another object of that name may be known already, from an answer to a write.
	gone := there && (known.uid == object.GetUID() || !newer(known.version, object.GetResourceVersion()))
	if gone {
		s.remove(key)
	}
	s.mu.Unlock()
	if gone {
		s.notify(key, nil)
	}
}

// Current implements Handler.
func (s *Store[K, T]) Current(version string) {
	s.mu.Lock()
	s.advance(version)
	var missing []K
	for key, known := range s.items {
		if known.round != s.round && !newer(known.version, version) {
			s.remove(key)
			missing = append(missing, key)
		}
	}
	clear(s.recent) // after a list, everything is looked at anyway
	s.become(true, nil)
	s.mu.Unlock()
	for _, key := range missing {
		s.notify(key, nil)
	}
}

// Lost implements Handler.
func (s *Store[K, T]) Lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.become(false, err)
}

// become notes a change of state. The caller holds mu.
func (s *Store[K, T]) become(current bool, problem error) {
	if s.current != current {
		s.current, s.since = current, time.Now()
	}
	s.problem = problem
	close(s.changed)
	s.changed = make(chan struct{})
}

// State reports whether the store is current, since when it is or is not, and why
// it is not, if that is known.
func (s *Store[K, T]) State() (current bool, since time.Time, problem error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.since, s.problem
}

// Await waits until the store is current, for patience at most. Settled reports whether
// a problem lasts, so that waiting is of no use.
func (s *Store[K, T]) Await(ctx context.Context, patience time.Duration, settled func(error) bool) error {
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
func (s *Store[K, T]) Get(key K) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, there := s.items[key]
	return known.value, there
}

// Each calls visit with everything that is kept, in no order. Visit must not call
// the store.
func (s *Store[K, T]) Each(visit func(K, T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, known := range s.items {
		visit(key, known.value)
	}
}

// CountOf returns how many objects a group has.
func (s *Store[K, T]) CountOf(group string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups[group])
}

// EachOf calls visit with everything that is kept of one group, in no order. Visit must
// not call the store.
func (s *Store[K, T]) EachOf(group string, visit func(K, T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.groups[group] {
		visit(key, s.items[key].value)
	}
}

// newer reports whether version a is newer than b, or cannot be compared with it
// (then what comes later counts as newer). Versions of one resource are ordered
// (KEP-5504).
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// older reports whether version a is known to be older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

package claims

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubesync/kubesync/apply/manifest"
)

// Table is who declares what. Its methods may be called concurrently.
type Table struct {
	mu       sync.Mutex                      // guards what follows
	byObject map[manifest.ID][]string        // the repos that declare it; the first holds it, the others wait
	byRepo   map[string]map[manifest.ID]bool // what each declares
	polled   map[string]time.Time            // when the poll began after which a repo was read last
	read     chan struct{}                   // closed, and made anew, whenever a repo was read
}

// NewTable returns a table in which no repo declares anything.
func NewTable() *Table {
	return &Table{
		byObject: map[manifest.ID][]string{},
		byRepo:   map[string]map[manifest.ID]bool{},
		polled:   map[string]time.Time{},
		read:     make(chan struct{}),
	}
}

// Declare says what a repo declares from now on, which the caller changes no more. It returns
// of that what another repo holds, by object, and which repos hold something that this
// one held. What a repo has, because the live object carries its label, it holds,
// whichever repo asks first after a restart.
func (t *Table) Declare(repo string, declared map[manifest.ID]bool, has func(manifest.ID) bool) (taken map[manifest.ID]string, heirs []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken = map[manifest.ID]string{}
	for id := range declared {
		switch names := t.byObject[id]; {
		case len(names) == 1 && names[0] == repo:
		case has(id):
			t.drop(id, repo)
			t.byObject[id] = slices.Insert(t.byObject[id], 0, repo)
		case !slices.Contains(names, repo):
			t.byObject[id] = append(names, repo)
		}
		if holder := t.byObject[id][0]; holder != repo {
			taken[id] = holder
		}
	}
	found := map[string]bool{}
	for id := range t.byRepo[repo] {
		if !declared[id] && t.drop(id, repo) && len(t.byObject[id]) > 0 {
			found[t.byObject[id][0]] = true
		}
	}
	t.byRepo[repo] = declared
	return taken, slices.Sorted(maps.Keys(found))
}

// drop forgets that a repo declares an object, and reports whether it held it. The caller
// holds mu.
func (t *Table) drop(id manifest.ID, repo string) (held bool) {
	names := t.byObject[id]
	held = len(names) > 0 && names[0] == repo
	rest := slices.DeleteFunc(names, func(name string) bool { return name == repo })
	if len(rest) == 0 {
		delete(t.byObject, id)
		return held
	}
	t.byObject[id] = rest
	return held
}

// Forget drops a repo that has ended: others may declare its objects from now on.
func (t *Table) Forget(repo string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.byRepo[repo] {
		t.drop(id, repo)
	}
	delete(t.byRepo, repo)
	delete(t.polled, repo)
}

// Holder returns the repo that holds an object, if one declares it.
func (t *Table) Holder(id manifest.ID) (repo string, held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if names := t.byObject[id]; len(names) > 0 {
		return names[0], true
	}
	return "", false
}

// Read notes that a repo's manifests were read and checked, from a poll that began then, and
// that what it declares is of that poll.
func (t *Table) Read(repo string, polled time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.polled[repo] = polled
	close(t.read)
	t.read = make(chan struct{})
}

// Unread returns those of some repos that were not polled since a moment, and read after
// that, and a channel that is closed when one is. The zero time stands for the start: to
// have been read once is enough.
func (t *Table) Unread(repos []string, since time.Time) (missing []string, change <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, repo := range repos {
		if !t.polled[repo].After(since) {
			missing = append(missing, repo)
		}
	}
	return missing, t.read
}

package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// Dying notes that a declared object is being deleted, and was not gone in time.
func (l *Ledger) Dying(m observed.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dying[m.ID] = m
}

// Died reports whether an object that was being deleted when its turn came is not any more,
// once.
func (l *Ledger) Died(id manifest.ID, live observed.Member, there bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, dying := l.dying[id]
	if !dying || there && live.Terminating {
		return false
	}
	delete(l.dying, id)
	return true
}

// TakeDying returns what was found being deleted, and forgets it.
func (l *Ledger) TakeDying() map[manifest.ID]observed.Member {
	l.mu.Lock()
	defer l.mu.Unlock()
	dying := l.dying
	l.dying = map[manifest.ID]observed.Member{}
	return dying
}

// DeletionBegan notes a deletion that was begun and not yet observed to end.
func (l *Ledger) DeletionBegan(m observed.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleting[m.ID] = m
}

// DeletionEnded forgets one.
func (l *Ledger) DeletionEnded(id manifest.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.deleting, id)
}

// IsDeleting reports whether the deletion of a member was begun and not yet observed to end.
func (l *Ledger) IsDeleting(m observed.Member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deleting[m.ID].UID == m.UID
}

// Deleting returns the identities of all whose deletion was begun and not observed to end.
func (l *Ledger) Deleting() map[manifest.ID]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	deleting := make(map[manifest.ID]bool, len(l.deleting))
	for id := range l.deleting {
		deleting[id] = true
	}
	return deleting
}

// GoneSince forgets the deletions that an earlier sync began and that have ended, by the live
// objects, and returns them in order. Of what cannot be seen it is not known.
func (l *Ledger) GoneSince(live map[manifest.ID]observed.Member, unseen func(manifest.ID) bool) []manifest.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone []manifest.ID
	for id, m := range l.deleting {
		if now, there := live[id]; there && now.UID == m.UID || unseen(id) {
			continue
		}
		gone = append(gone, id)
	}
	maps.DeleteFunc(l.deleting, func(id manifest.ID, _ observed.Member) bool { return slices.Contains(gone, id) })
	slices.SortFunc(gone, manifest.ID.Compare)
	return gone
}

// Left notes when members were found to have left the set's declarations, and
// returns when the last of them was. It forgets those that are back, or gone.
func (l *Ledger) Left(leaving []observed.Member, polled time.Time) (last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := make(map[manifest.ID]time.Time, len(leaving))
	for _, m := range leaving {
		at, known := l.left[m.ID]
		if !known {
			at = polled
		}
		left[m.ID] = at
		if at.After(last) {
			last = at
		}
	}
	l.left = left
	return last
}

// LeftAt returns when a member was found to have left; zero if it has not.
func (l *Ledger) LeftAt(id manifest.ID) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left[id]
}

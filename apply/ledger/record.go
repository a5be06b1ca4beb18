package ledger

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/prune"
)

// MaxRecorded is how many members a parent records, and how many approvals, at most: with
// what a parent holds besides they fit into its 1 MiB.
const MaxRecorded = 40_000

// ReadRecord reads which objects the set has written, as a plan begins. A parent that is
// gone takes the record with it, but for what this process has written itself and
// declares: whoever deleted it took from the set what it knew.
func (l *Ledger) ReadRecord(hasParent bool, members []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !hasParent:
		l.encoded = nil
		l.recorded, l.parentless = prune.Record{}, true
		for _, e := range l.objects {
			if e.uid != "" {
				l.recorded.Add(e.uid)
			}
		}
	case l.objects == nil, l.parentless: // that it was gone may have been a false answer
		recorded := prune.Decode(members)
		maps.Copy(recorded, l.recorded)
		l.recorded, l.parentless, l.encoded = recorded, false, nil
	}
}

// Members is the record as the parent holds it. The caller must not change it.
func (l *Ledger) Members() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.encoded == nil {
		l.encoded = l.recorded.Encode(MaxRecorded)
	}
	return l.encoded
}

// IsRecorded reports whether the set has a record of having written the very object.
func (l *Ledger) IsRecorded(m observed.Member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recorded.Has(m.UID)
}

// Recorded counts the members that are on the record.
func (l *Ledger) Recorded(members map[manifest.ID]observed.Member) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range members {
		if m.Set == l.set && l.recorded.Has(m.UID) {
			count++
		}
	}
	return count
}

// Disown takes members off the record.
func (l *Ledger) Disown(members []observed.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range members {
		l.recorded.Remove(m.UID)
		l.encoded = nil
	}
}

// recordAnswer notes the UID that the answer to a write has named, in place of the one
// that was known before. The caller holds mu.
func (l *Ledger) recordAnswer(before, uid types.UID) {
	if before == uid && before != "" {
		return
	}
	l.recorded.Remove(before)
	l.recorded.Add(uid)
	l.encoded = nil
}

// CutBack takes off the record, where that has grown far beyond what is there because others
// have deleted much, all that is not. Live has to be everything that the set may have.
func (l *Ledger) CutBack(live map[manifest.ID]observed.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recorded) <= max(MaxRecorded/2, 2*len(live)) {
		return
	}
	there := prune.Record{}
	for _, m := range live {
		there.Add(m.UID)
	}
	for _, e := range l.objects {
		there.Add(e.uid)
	}
	l.recorded.Keep(there)
	l.encoded = nil
}

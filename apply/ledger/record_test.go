package ledger

import (
	"fmt"
	"testing"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/prune"
)

// recordOf is a record as a parent holds it.
func recordOf(uids ...types.UID) []byte {
	record := prune.Record{}
	for _, uid := range uids {
		record.Add(uid)
	}
	return record.Encode(MaxRecorded)
}

// TestReadRecord has a set believe of its record what its parent says, and only its own
// writes where there is none.
func TestReadRecord(t *testing.T) {
	t.Parallel()
	// Each step is a parent as a plan reads it; nil is none.
	type step struct{ members []byte }
	earlier := step{recordOf("earlier")}
	tests := map[string]struct {
		wrote bool // before the steps
		steps []step
		known map[types.UID]bool
	}{
		"a new process":                          {false, []step{earlier}, map[types.UID]bool{"earlier": true, "uid0": false}},
		"a new process without a parent":         {false, []step{{nil}}, map[types.UID]bool{"earlier": false}},
		"a parent that is there after all":       {false, []step{{nil}, earlier}, map[types.UID]bool{"earlier": true}},
		"what was written is known":              {true, []step{earlier}, map[types.UID]bool{"uid0": true, "earlier": false}},
		"a parent that is gone takes the record": {true, []step{earlier, {nil}}, map[types.UID]bool{"uid0": true, "earlier": false}},
		"one false 404 of the parent":            {true, []step{{nil}, earlier}, map[types.UID]bool{"uid0": true, "earlier": true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := New("mine")
			if test.wrote {
				l = written(t, 1)
			}
			for _, s := range test.steps {
				l.ReadRecord(s.members != nil, s.members)
			}
			for uid, known := range test.known {
				if l.IsRecorded(observed.Member{UID: uid}) != known {
					t.Errorf("%s is on the record: %v", uid, !known)
				}
			}
		})
	}
}

// TestCutBack takes what is not there off a record only if that has grown far beyond it.
func TestCutBack(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, MaxRecorded} {
		l := New("mine")
		record := prune.Record{}
		for i := range size {
			record.Add(types.UID(fmt.Sprint("gone", i)))
		}
		l.ReadRecord(true, record.Encode(size))
		o := numbered(t, 1, "x")
		l.Declare(Declaration{Objects: []manifest.Object{o}})
		l.Wrote(l.Entry(o.ID()), o, observed.Member{ID: o.ID(), Set: "mine", UID: "here", Entry: unique.Make("{}")})
		l.CutBack(map[manifest.ID]observed.Member{{Name: "seen"}: {UID: "seen"}})
		if kept := l.IsRecorded(observed.Member{UID: "gone1"}); kept != (size == 10) {
			t.Errorf("of %d, what is not there is on the record: %v", size, kept)
		}
		if !l.IsRecorded(observed.Member{UID: "here"}) {
			t.Errorf("of %d, what is declared was taken off the record", size)
		}
	}
}

// TestLeft keeps the moment in which a member was first found to have left.
func TestLeft(t *testing.T) {
	t.Parallel()
	l, at := New("mine"), time.Unix(1000, 0)
	a, b := observed.Member{ID: manifest.ID{Name: "a"}}, observed.Member{ID: manifest.ID{Name: "b"}}
	steps := []struct {
		leaving []observed.Member
		polled  time.Time
		last    time.Time
	}{
		{[]observed.Member{a}, at, at},
		{[]observed.Member{a}, at.Add(time.Minute), at},
		{[]observed.Member{a, b}, at.Add(2 * time.Minute), at.Add(2 * time.Minute)},
		{nil, at.Add(3 * time.Minute), time.Time{}},
		{[]observed.Member{a}, at.Add(4 * time.Minute), at.Add(4 * time.Minute)}, // it was back in between
	}
	for i, step := range steps {
		if last := l.Left(step.leaving, step.polled); !last.Equal(step.last) {
			t.Errorf("step %d: the last left at %s, want %s", i, last, step.last)
		}
	}
	if !l.LeftAt(b.ID).IsZero() {
		t.Error("what is back, or gone, counts as having left")
	}
}

// TestGoneSince has a deletion end when the very object is not seen any more where it can be.
func TestGoneSince(t *testing.T) {
	t.Parallel()
	id := manifest.ID{Name: "a"}
	tests := map[string]struct {
		live   map[manifest.ID]observed.Member
		unseen bool
		gone   bool
	}{
		"gone":                      {nil, false, true},
		"there":                     {map[manifest.ID]observed.Member{id: {UID: "1"}}, false, false},
		"another one of its name":   {map[manifest.ID]observed.Member{id: {UID: "2"}}, false, true},
		"its kind cannot be looked": {nil, true, false},
	}
	for name, test := range tests {
		l := New("mine")
		l.DeletionBegan(observed.Member{ID: id, UID: "1"})
		gone := l.GoneSince(test.live, func(manifest.ID) bool { return test.unseen })
		if (len(gone) == 1) != test.gone || l.IsDeleting(observed.Member{ID: id, UID: "1"}) == test.gone {
			t.Errorf("%s: gone %v", name, gone)
		}
	}
}

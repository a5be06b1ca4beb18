package ledger

import "time"

const (
	// So many corrections of one object in such a time are a conflict.
	conflictCorrections = 10
	conflictWindow      = 10 * time.Minute
	// In a conflict the pause between two corrections doubles from conflictFirst on.
	conflictFirst = 5 * time.Second
	conflictLast  = 5 * time.Minute
)

// conflict counts the corrections of one object. Another writer who writes the same
// fields for ever must not have us do the same. The zero value has seen none.
type conflict struct {
	at    []time.Time // of the corrections, as many as decide
	pause time.Duration
	until time.Time
}

// corrected counts a correction. It returns how long to let the object be from now
// on, and whether it is in conflict.
func (f *conflict) corrected(now time.Time) (pause time.Duration, inConflict bool) {
	if n := len(f.at); f.pause > 0 && now.Sub(f.at[n-1]) > conflictWindow {
		*f = conflict{} // it was quiet for long enough
	}
	f.at = append(f.at, now)
	if len(f.at) > conflictCorrections {
		f.at = f.at[1:]
	}
	switch {
	case f.pause > 0:
		f.pause = min(2*f.pause, conflictLast)
	case len(f.at) == conflictCorrections && now.Sub(f.at[0]) < conflictWindow:
		f.pause = conflictFirst
	default:
		return 0, false
	}
	f.until = now.Add(f.pause)
	return f.pause, true
}

// wait returns how long the object is to be let be.
func (f *conflict) wait(now time.Time) time.Duration { return max(0, f.until.Sub(now)) }

package backoff

import "time"

// A state that persists is logged again after a minute, then ever more rarely, up to once an
// hour: often enough to be found in a log that was cut off, too rarely to fill it.
const (
	firstRepeat   = time.Minute
	longestRepeat = time.Hour
)

// Repeat decides when a state that persists is logged again. The zero value has logged
// nothing yet. It is not safe for concurrent use.
type Repeat struct {
	what string
	next time.Time
	wait time.Duration
}

// Due reports whether what is to be logged now: because it is new, or because it was last
// logged long enough ago.
func (r *Repeat) Due(what string, now time.Time) bool {
	switch {
	case r.wait == 0 || r.what != what:
		r.wait = firstRepeat
	case now.Before(r.next):
		return false
	default:
		r.wait = min(2*r.wait, longestRepeat)
	}
	r.what, r.next = what, now.Add(r.wait)
	return true
}

package sync

import "time"

// What goes on unchanged is said again after a minute, then ever more rarely,
// up to once an hour: often enough to be found in a log that was cut off, too
// rarely to fill it.
const (
	echoFirst = time.Minute
	echoLast  = time.Hour
)

// echo decides when a state that persists is said (again). The zero value has
// said nothing yet.
type echo struct {
	what  string
	since time.Time
	next  time.Time
	wait  time.Duration
	count int // how often it was seen
}

// again tells whether what is to be said now: because it is new, or because it
// was last said long enough ago.
func (e *echo) again(what string, now time.Time) bool {
	if e.count == 0 || e.what != what {
		*e = echo{what: what, since: now, next: now.Add(echoFirst), wait: echoFirst, count: 1}
		return true
	}
	e.count++
	if now.Before(e.next) {
		return false
	}
	e.wait = min(2*e.wait, echoLast)
	e.next = now.Add(e.wait)
	return true
}

package limits

import (
	"fmt"
	"time"
)

// Limits are the bounds in force. The zero value is all defaults; it may be copied and
// compared.
type Limits struct {
	set [count]int64 // 0 for the default
}

// With returns the limits with one of them set, for tests. It must be positive: bytes,
// nanoseconds, or a number.
func (l Limits) With(limit Limit, most int64) Limits {
	l.set[limit] = most
	return l
}

// Of returns the most that is allowed: bytes, nanoseconds, or a number.
func (l Limits) Of(limit Limit) int64 {
	if most := l.set[limit]; most != 0 {
		return most
	}
	return limit.bound().most
}

// Duration returns the most that is allowed of a limit that is a time.
func (l Limits) Duration(limit Limit) time.Duration { return time.Duration(l.Of(limit)) }

// Check returns an error of type *Exceeded if what was met is over a limit. what says
// what it was met in, as the subject of a sentence: "a.yaml", "the pack".
func (l Limits) Check(limit Limit, what string, met int64) error {
	if met <= l.Of(limit) {
		return nil
	}
	return l.Exceeded(limit, what, met)
}

// Exceeded returns the error for what is over a limit. met is 0 where nobody knows how
// much it would have been, as of a stream that was not read any further.
func (l Limits) Exceeded(limit Limit, what string, met int64) *Exceeded {
	return &Exceeded{Limit: limit, Most: l.Of(limit), Met: met, what: what}
}

// Exceeded is the error of what is over a limit.
type Exceeded struct {
	Limit Limit
	Most  int64 // what is allowed
	Met   int64 // 0 if it was not seen to its end

	what string
}

// Error says what is over which limit by how much, and how to allow it.
func (e *Exceeded) Error() string {
	b := e.Limit.bound()
	if e.Met == 0 {
		return fmt.Sprintf("%s: more than %s, the limit %q (%s); if it is meant to be, raise it: LIMITS=%s=%s",
			e.what, b.unit.format(e.Most), b.name, plain(b.what), b.name, b.unit.plain(b.unit.above(e.Most)))
	}
	return fmt.Sprintf("%s: %s, and the limit %q (%s) is %s; if it is meant to be, raise it: LIMITS=%s=%s",
		e.what, b.unit.format(e.Met), b.name, plain(b.what), b.unit.format(e.Most), b.name, b.unit.plain(b.unit.above(e.Met)))
}

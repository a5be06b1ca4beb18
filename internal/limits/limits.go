package limits

import (
	"fmt"
	"strings"
)

// Limits are the bounds in force. The zero value is all defaults; it may be copied and
// compared.
type Limits struct {
	set [count]int64 // 0 for the default
}

// With returns the limits with one of them set, fixed ones too, for tests. It must be
// positive: bytes, or a number.
func (l Limits) With(limit Limit, most int64) Limits {
	l.set[limit] = most
	return l
}

// Of returns the most that is allowed: bytes, or a number.
func (l Limits) Of(limit Limit) int64 {
	if most := l.set[limit]; most != 0 {
		return most
	}
	return limit.bound().most
}

// Check returns an error of type *Exceeded if what was met is over a limit. what says
// what it was met in, as the subject of a sentence: "a.yaml", "the pack".
func (l Limits) Check(limit Limit, what string, met int64) error {
	if met <= l.Of(limit) {
		return nil
	}
	return l.Exceeded(limit, what, met)
}

// Exceeded returns the error for what is over a limit. met is 0 where it is not known,
// as of a stream that is not read any further.
func (l Limits) Exceeded(limit Limit, what string, met int64) *Exceeded {
	return &Exceeded{Limit: limit, Most: l.Of(limit), Met: met, what: what}
}

// Exceeded is the error of what is over a limit.
type Exceeded struct {
	Limit Limit
	Most  int64 // what is allowed
	Met   int64 // 0 if it was not read to its end

	what string
}

// Error says what is over which limit by how much, and how to raise that if LIMITS does.
func (e *Exceeded) Error() string {
	b := e.Limit.bound()
	met := "more than " + b.unit.format(e.Most)
	if e.Met != 0 {
		met = b.unit.format(e.Met)
	}
	advice := "that is fixed"
	if e.Limit.variable() {
		advice = fmt.Sprintf("raise it with LIMITS=%s=%s", b.name, b.unit.plain(b.unit.above(max(e.Met, e.Most))))
	}
	return fmt.Sprintf("%s: %s, the limit %q (%s) is %s; %s",
		e.what, met, b.name, strings.ReplaceAll(b.what, "'", ""), b.unit.format(e.Most), advice)
}

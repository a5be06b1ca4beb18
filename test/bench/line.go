package main

import "fmt"

// line is one line of the table of results.
type line struct {
	what   string // was measured
	ours   string // what it was for kubesync
	peer   string // what it was for what kubesync is compared with
	ratio  string
	target string
	met    string // "yes", "no", or "" if there is no target
}

// verdict words whether a target is met.
func verdict(met bool) string {
	if met {
		return "yes"
	}
	return "no"
}

// atMost compares times: kubesync may take so many times as long as the peer.
func atMost(what string, ours series, peer string, theirs series, limit float64) line {
	ratio := ours.median() / theirs.median()
	return line{
		what: what, ours: ours.String(), peer: peer + ": " + theirs.String(),
		ratio: fmt.Sprintf("%.2f", ratio), target: fmt.Sprintf("≤ %g ×", limit), met: verdict(ratio <= limit),
	}
}

// fasterThan compares times: the peer has to take so many times as long as kubesync.
func fasterThan(what string, ours series, peer string, theirs series, limit float64) line {
	ratio := theirs.median() / ours.median()
	return line{
		what: what, ours: ours.String(), peer: peer + ": " + theirs.String(),
		ratio: fmt.Sprintf("%.1f × faster", ratio), target: fmt.Sprintf("≥ %g × faster", limit), met: verdict(ratio >= limit),
	}
}

// within holds a figure against a limit.
func within[T ~int | ~int64 | ~float64](what string, value, limit T, show func(T) string) line {
	return line{what: what, ours: show(value), target: "≤ " + show(limit), met: verdict(value <= limit)}
}

// exactly holds a count against what it has to be; detail says more about it.
func exactly(what string, value, want int, detail string) line {
	ours := fmt.Sprint(value)
	if detail != "" {
		ours += " (" + detail + ")"
	}
	return line{what: what, ours: ours, target: fmt.Sprint(want), met: verdict(value == want)}
}

// count words a number.
func count(n int) string { return fmt.Sprint(n) }

// text is a line that is not held against anything.
func text(what, ours string) line { return line{what: what, ours: ours} }

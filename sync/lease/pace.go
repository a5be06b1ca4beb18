package lease

import (
	"slices"
	"time"
)

// Timing says how fast a failover is. A standby follows a leader that crashed
// after Duration plus at most 2.2 RetryPeriods (the elector's jitter),
// 20 s by default; one that stopped cleanly within a Poll. A holder that cannot
// renew stops writing after four fifths of Duration.
//
// Where writes of the Lease take long, as with an admission webhook that is asked about
// Leases and does not answer, it lasts longer: see lasting. It says so itself, and
// standbys go by what it says.
type Timing struct {
	Duration    time.Duration // how long a standby waits for a sign of life
	RetryPeriod time.Duration // between two renewals, and two attempts to take the lease
	Poll        time.Duration // how often a standby looks whether the lease was released
}

// DefaultTiming is what Kubernetes' own controllers use, plus the poll.
func DefaultTiming() Timing {
	return Timing{Duration: 15 * time.Second, RetryPeriod: 2 * time.Second, Poll: time.Second}
}

const (
	// takeTimeout bounds a write that takes the Lease, which need not be quick: the API
	// server by itself gives every request up after a minute.
	takeTimeout = 65 * time.Second
	// paceMemory is how many quick writes it takes until slow ones are forgotten.
	paceMemory = 8
	// mostDoublings bounds how long a Lease lasts: four minutes by default, in which even
	// writes that take as long as the API server allows are renewed in time.
	mostDoublings = 4
)

// valid returns for how long the holder of a Lease may write after it sent a renewal. A
// standby counts the whole time from when it sees that, which is later; the fifth that
// is left out is for a write that is on its way when the time ends.
func valid(lasting time.Duration) time.Duration { return lasting * 4 / 5 }

// lasting returns how long a Lease has to last if a write of it may take as long as
// slowest: until the holder has to stop there must be room for the renewal before, the
// pause, a renewal that takes half as long again and fails, and another.
func (t Timing) lasting(slowest time.Duration) time.Duration {
	lasting := t.Duration
	for range mostDoublings {
		if valid(lasting) >= t.RetryPeriod+slowest*7/2 {
			break
		}
		lasting *= 2
	}
	return lasting
}

// slow reports whether a write that takes so long has the Lease last longer.
func (t Timing) slow(took time.Duration) bool { return t.lasting(took) > t.Duration }

// slowFrom is the longest that a write may take without being slow.
func (t Timing) slowFrom() time.Duration { return (valid(t.Duration) - t.RetryPeriod) * 2 / 7 }

// pace is how long the last writes took, the newest last.
type pace []time.Duration

// with returns the pace with one more write.
func (p pace) with(took time.Duration) pace {
	return append(slices.Clone(p[max(0, len(p)-paceMemory+1):]), took)
}

// slowest returns the longest of them.
func (p pace) slowest() time.Duration {
	if len(p) == 0 {
		return 0
	}
	return slices.Max(p)
}

const (
	// releaseTimeout bounds the release: a process that is asked to stop has 10 s in all.
	releaseTimeout = 2 * time.Second
	// releaseLongest bounds it where writes are known to be slow. That takes a few seconds
	// more than the ten, which is worth it: killed meanwhile, the process has lost nothing,
	// and a standby need not wait for as long as a Lease of slow writes lasts. With the
	// time that the work takes to stop, it has to stay below the 15 s that deploy/ grants.
	releaseLongest = 13 * time.Second
)

// releaseTime returns how long a release may take, given the slowest of the last writes;
// false if there is no use in trying.
func releaseTime(slowest time.Duration) (time.Duration, bool) {
	if slowest < releaseTimeout/2 {
		return releaseTimeout, true
	}
	needed := slowest + releaseTimeout
	return needed, needed <= releaseLongest
}

package apply

import "time"

const (
	// So many corrections of one object in such a time are a fight.
	fightCorrections = 10
	fightWindow      = 10 * time.Minute
	// In a fight the pause between two corrections doubles from fightFirst on.
	fightFirst = 5 * time.Second
	fightLast  = 5 * time.Minute
)

// fight counts the corrections of one object. Somebody else who writes the same
// fields for ever must not have us do the same. The zero value has seen none.
type fight struct {
	at    []time.Time // of the corrections, as many as decide
	pause time.Duration
	until time.Time
}

// corrected counts a correction. It returns how long to let the object be from now
// on, and whether it is fought over.
func (f *fight) corrected(now time.Time) (pause time.Duration, fought bool) {
	if n := len(f.at); f.pause > 0 && now.Sub(f.at[n-1]) > fightWindow {
		*f = fight{} // it was quiet for long enough
	}
	f.at = append(f.at, now)
	if len(f.at) > fightCorrections {
		f.at = f.at[1:]
	}
	switch {
	case f.pause > 0:
		f.pause = min(2*f.pause, fightLast)
	case len(f.at) == fightCorrections && now.Sub(f.at[0]) < fightWindow:
		f.pause = fightFirst
	default:
		return 0, false
	}
	f.until = now.Add(f.pause)
	return f.pause, true
}

// wait returns how long the object is to be let be.
func (f *fight) wait(now time.Time) time.Duration { return max(0, f.until.Sub(now)) }

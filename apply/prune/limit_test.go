package prune

import "testing"

func TestLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit         string
		leaving, live int
		exceeded      bool
	}{
		"half is allowed":             {"50%", 15, 30, false},
		"more than half":              {"50%", 16, 30, true},
		"up to ten, whatever share":   {"50%", 10, 10, false},
		"nothing is allowed by share": {"0%", 11, 1000, true},
		"everything is":               {"100%", 1000, 1000, false},
		"a number":                    {"20", 20, 21, false},
		"more than the number":        {"20", 21, 1000, true},
		"none":                        {"0", 1, 1000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit, err := ParseLimit(test.limit)
			if err != nil || limit.String() != test.limit || limit.Exceeded(test.leaving, test.live) != test.exceeded {
				t.Errorf("%s (%v): exceeded %v", limit, err, limit.Exceeded(test.leaving, test.live))
			}
		})
	}
	for _, wrong := range []string{"", "%", "-1", "101%", "half", "50 %", "1.5"} {
		if _, err := ParseLimit(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

// FuzzLimit writes what it has read and reads it again, and bounds what a limit
// lets go.
func FuzzLimit(f *testing.F) {
	for _, seed := range []string{"50%", "20", "0", "0%", "100%", "101%", "-1", "+5", " 7 ", "1e3", "", "%", "99999999999999999999"} {
		f.Add(seed, 20, 30)
	}
	f.Fuzz(func(t *testing.T, text string, leaving, live int) {
		limit, err := ParseLimit(text)
		if err != nil {
			if limit != (Limit{}) {
				t.Errorf("%q: an error and a limit", text)
			}
			return
		}
		if again, err := ParseLimit(limit.String()); err != nil || again != limit {
			t.Errorf("%q is written as %q and read as %v: %v", text, limit, again, err)
		}
		if leaving < 0 || live < leaving || live > 1_000_000 {
			return
		}
		if limit.Exceeded(leaving, live) && limit.Exceeded(0, live) {
			t.Errorf("%q lets nothing go, not even nothing", text)
		}
		if !limit.Exceeded(leaving, live) && leaving > smallPrune && limit.Percent && leaving*100 > limit.Value*live {
			t.Errorf("%q lets %d of %d go", text, leaving, live)
		}
	})
}

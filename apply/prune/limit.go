package prune

import (
	"fmt"
	"strconv"
	"strings"
)

// smallPrune is the number of objects up to which a percentage is not looked at:
// in a small set every change is a large share.
const smallPrune = 10

// Limit is the largest part of a set that one revision may prune without
// approval: a share of its live objects, or a number.
type Limit struct {
	Percent bool
	Value   int
}

// ParseLimit reads "50%" (0 to 100) or "20" (0 or more).
func ParseLimit(text string) (Limit, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	value, err := strconv.Atoi(number)
	if err != nil || value < 0 || percent && value > 100 {
		return Limit{}, fmt.Errorf("%q is neither a share (0%% to 100%%) nor a number of objects (0 or more)", text)
	}
	return Limit{Percent: percent, Value: value}, nil
}

// String returns the limit as it is written.
func (l Limit) String() string {
	if l.Percent {
		return strconv.Itoa(l.Value) + "%"
	}
	return strconv.Itoa(l.Value)
}

// Exceeded reports whether pruning so many of a set's live objects needs approval.
func (l Limit) Exceeded(leaving, live int) bool {
	if l.Percent {
		return leaving > smallPrune && leaving*100 > l.Value*live
	}
	return leaving > l.Value
}

package limits

import (
	"fmt"
	"math"
	"strconv"
)

// unit is what a limit is counted in.
type unit int

const (
	number unit = iota
	size        // bytes
)

// scales are the prefixes of sizes, the largest first.
func scales() []int64 { return []int64{gibi, mebi, kibi} }

// prefixes are the names of scales.
const prefixes = "GMK"

// example is a value as LIMITS takes it.
func (u unit) example() string {
	if u == size {
		return `a size such as "64Mi"`
	}
	return `a number such as "5000"`
}

// format writes a value for people, sizes with the digits that matter: "64 MiB",
// "1.5 GiB", "17 bytes". It rounds up: what is over a limit must not look like it.
func (u unit) format(value int64) string {
	if u == number {
		return strconv.FormatInt(value, 10)
	}
	for i, scale := range scales() {
		if value >= scale {
			tenths := math.Ceil(float64(value)*10/float64(scale)) / 10
			return strconv.FormatFloat(tenths, 'f', -1, 64) + " " + prefixes[i:i+1] + "iB"
		}
	}
	return fmt.Sprintf("%d bytes", value)
}

// plain writes a value as LIMITS takes it.
func (u unit) plain(value int64) string {
	for i, scale := range scales() {
		if u == size && value >= scale && value%scale == 0 {
			return strconv.FormatInt(value/scale, 10) + prefixes[i:i+1] + "i"
		}
	}
	return strconv.FormatInt(value, 10)
}

// above returns a round value that is more than another one: what to raise a limit to.
func (u unit) above(value int64) int64 {
	up := int64(1)
	for u == size && up < gibi && value >= up*kibi {
		up *= kibi
	}
	for up <= value && up < largest {
		up *= 2
	}
	return up
}

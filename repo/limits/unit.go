package limits

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// unit is what a limit is counted in.
type unit int

const (
	number unit = iota
	size        // bytes
	duration
)

// example is a value as LIMITS takes it.
func (u unit) example() string {
	switch u {
	case size:
		return `a size such as "64Mi"`
	case duration:
		return `a time such as "90s"`
	}
	return `a number such as "5000"`
}

// format writes a value for people.
func (u unit) format(value int64) string {
	switch u {
	case size:
		return formatSize(value)
	case duration:
		return shortDuration(time.Duration(value))
	}
	return strconv.FormatInt(value, 10)
}

// formatSize writes a size with the digits that matter: "64 MiB", "1.5 GiB", "17 bytes".
// It rounds up, as what is over a limit must not look like the limit.
func formatSize(bytes int64) string {
	for _, scale := range []struct {
		bytes int64
		name  string
	}{{gibi, "GiB"}, {mebi, "MiB"}, {kibi, "KiB"}} {
		if bytes >= scale.bytes {
			tenths := math.Ceil(float64(bytes)*10/float64(scale.bytes)) / 10
			return strconv.FormatFloat(tenths, 'f', -1, 64) + " " + scale.name
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// plain writes a value as LIMITS takes it.
func (u unit) plain(value int64) string {
	switch u {
	case size:
		for _, scale := range []struct {
			bytes int64
			name  string
		}{{gibi, "Gi"}, {mebi, "Mi"}, {kibi, "Ki"}} {
			if value >= scale.bytes && value%scale.bytes == 0 {
				return strconv.FormatInt(value/scale.bytes, 10) + scale.name
			}
		}
	case duration:
		return shortDuration(time.Duration(value))
	}
	return strconv.FormatInt(value, 10)
}

// shortDuration writes "1m" where Go writes "1m0s".
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// above returns a round value that is more than another one: what to raise a limit to.
func (u unit) above(value int64) int64 {
	step := int64(1)
	switch u {
	case size:
		step = kibi
		for step < gibi && value >= step*kibi {
			step *= kibi
		}
	case duration:
		return 2 * value
	}
	up := step
	for up <= value && up < largest {
		up *= 2
	}
	return up
}

// plain takes the marks of code out of a description.
func plain(description string) string { return strings.ReplaceAll(description, "'", "") }

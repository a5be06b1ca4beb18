package confine

import (
	"strconv"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]string{
		"12 (sh) S 1 12 12 0":        "12 1",
		"12 (a) b) (c) R 345 12 12":  "12 345",
		"12 (sleep 1) Z 7 0":         "12 7",
		"":                           "",
		"12":                         "",
		"12 (sh":                     "",
		"x (sh) S 1":                 "",
		"12 (sh) S x":                "",
		"12 (new\nline) S 4 1 2 3 4": "12 4",
	} {
		pid, parent, ok := parseStat(stat)
		got := ""
		if ok {
			got = strconv.Itoa(pid) + " " + strconv.Itoa(parent)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", stat, got, want)
		}
	}
}

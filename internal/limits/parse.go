package limits

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
)

// largest is more than any machine has: no sum of a few limits overflows.
const largest = 1 << 50

// Parse reads LIMITS: NAME=VALUE, several separated by commas or white space. Values
// are written as Kubernetes writes quantities (512Mi, 2G, 500k, 1000). The error names
// every mistake.
func Parse(text string) (Limits, error) {
	var (
		limits   Limits
		problems []string
	)
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if err := limits.parse(part); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return Limits{}, errors.New(strings.Join(problems, "; "))
	}
	return limits, nil
}

// parse reads NAME=VALUE.
func (l *Limits) parse(part string) error {
	name, value, found := strings.Cut(part, "=")
	limit, known := byName(name)
	switch {
	case !known:
		return fmt.Errorf("%q is none of %s", name, strings.Join(names(), ", "))
	case !found:
		return fmt.Errorf("%q has no value: want %s=VALUE", name, name)
	case l.set[limit] != 0:
		return fmt.Errorf("%s is given twice", name)
	}
	unit := limit.bound().unit
	quantity, err := resource.ParseQuantity(value)
	switch {
	case err != nil || quantity.Sign() < 0 || quantity.CmpInt64(largest) > 0:
		return fmt.Errorf("%s: want %s, at most %s", part, unit.example(), unit.plain(largest))
	case quantity.IsZero():
		return fmt.Errorf("%s: want more than nothing: no limit can be switched off, but raised", part)
	}
	l.set[limit] = quantity.Value()
	return nil
}

func byName(name string) (Limit, bool) {
	for l := range Limit(variables) {
		if l.String() == name {
			return l, true
		}
	}
	return 0, false
}

func names() []string {
	var names []string
	for _, b := range Bounds() {
		names = append(names, b.Name)
	}
	return names
}

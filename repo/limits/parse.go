package limits

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
)

// largest is more than any machine has: no sum of a few limits overflows.
const largest = 1 << 50

// Parse reads LIMITS: NAME=VALUE, several separated by commas or white space. Sizes
// and numbers are written as Kubernetes writes quantities (512Mi, 2G, 500k, 1000),
// times as Go does (90s, 5m). The error tells everything that is wrong.
func Parse(text string) (Limits, error) {
	var (
		limits   Limits
		problems []error
		given    [count]bool
	)
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		name, value, found := strings.Cut(part, "=")
		limit, known := byName(name)
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("%q is none of %s", name, strings.Join(names(), ", ")))
			continue
		case !found:
			problems = append(problems, fmt.Errorf("%q has no value: want %s=VALUE", name, name))
			continue
		case given[limit]:
			problems = append(problems, fmt.Errorf("%s is given twice", name))
			continue
		}
		given[limit] = true
		most, err := limit.bound().unit.parse(value)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s=%s: %w", name, value, err))
		}
		limits.set[limit] = most
	}
	if len(problems) > 0 {
		return Limits{}, joined(problems)
	}
	return limits, nil
}

// joined puts several problems of one value on one line.
func joined(problems []error) error {
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = problem.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

func byName(name string) (Limit, bool) {
	for l := range Limit(count) {
		if l.String() == name {
			return l, true
		}
	}
	return 0, false
}

func names() []string {
	var names []string
	for l := range Limit(count) {
		names = append(names, l.String())
	}
	return names
}

// parse reads a value.
func (u unit) parse(text string) (int64, error) {
	value := int64(0)
	if u == duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("want %s", u.example())
		}
		value = int64(d)
	} else {
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 || quantity.CmpInt64(largest) > 0 {
			return 0, fmt.Errorf("want %s, at most %s", u.example(), u.plain(largest))
		}
		value = quantity.Value()
	}
	if value <= 0 {
		return 0, errors.New("want more than nothing: no limit can be switched off, but raised")
	}
	return value, nil
}

// String writes the limits that are not the default as Parse reads them.
func (l Limits) String() string {
	var parts []string
	for limit, most := range l.set {
		if most != 0 {
			b := Limit(limit).bound()
			parts = append(parts, b.name+"="+b.unit.plain(most))
		}
	}
	return strings.Join(parts, ",")
}

package openapi

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// rules holds one value against what its schema says of values of its type; what is
// in it has its own turn. The words are those of the API server.
func (w *walk) rules(s *spec.Schema, value any, at Path) {
	if !allowed(s.Enum, value) && (w.custom || value != "") { // an empty text is taken for an absent one
		w.fault(at, "should be one of %v", s.Enum)
	}
	switch v := value.(type) {
	case int64:
		w.numberRules(s, float64(v), at)
	case float64:
		w.numberRules(s, v, at)
	case string:
		w.stringRules(s, v, at)
	case []any:
		w.count(at, len(v), s.MinItems, s.MaxItems, "items")
	case map[string]any:
		w.count(at, len(v), s.MinProperties, s.MaxProperties, "fields")
	}
	w.junctors(s, value, at)
}

// allowed reports whether a value is one of a list; an empty list allows all.
func allowed(values []any, value any) bool {
	text := encoded(value)
	return len(values) == 0 || slices.ContainsFunc(values, func(one any) bool { return encoded(one) == text })
}

// encoded is a value as text, the same for equal values.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

// numberRules looks at the range of a number.
func (w *walk) numberRules(s *spec.Schema, v float64, at Path) {
	if s.Format == "int32" && (v < math.MinInt32 || v > math.MaxInt32) {
		w.fault(at, "should be between %d and %d", math.MinInt32, math.MaxInt32)
	}
	switch least := s.Minimum; {
	case least == nil:
	case s.ExclusiveMinimum && v <= *least:
		w.fault(at, "should be greater than %v", *least)
	case v < *least:
		w.fault(at, "should be greater than or equal to %v", *least)
	}
	switch most := s.Maximum; {
	case most == nil:
	case s.ExclusiveMaximum && v >= *most:
		w.fault(at, "should be less than %v", *most)
	case v > *most:
		w.fault(at, "should be less than or equal to %v", *most)
	}
	if of := s.MultipleOf; of != nil && *of != 0 && math.Abs(math.Remainder(v, *of)) > 1e-9 {
		w.fault(at, "should be a multiple of %v", *of)
	}
}

// stringRules looks at the length, the pattern and the format of a text. Formats
// that schemas of custom resources ask for are left to the API server, which knows
// few of them.
func (w *walk) stringRules(s *spec.Schema, v string, at Path) {
	w.count(at, utf8.RuneCountInString(v), s.MinLength, s.MaxLength, "characters")
	if s.Pattern != "" {
		if pattern, err := regexp.Compile(s.Pattern); err == nil && !pattern.MatchString(v) {
			w.fault(at, "should match '%s'", s.Pattern)
		}
	}
	if w.custom {
		return
	}
	switch s.Format {
	case "byte":
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			w.fault(at, "is not base64")
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			w.fault(at, "is no time such as 2006-01-02T15:04:05Z")
		}
	}
}

// count looks at how many there are of something.
func (w *walk) count(at Path, n int, least, most *int64, what string) {
	if least != nil && int64(n) < *least {
		w.fault(at, "should have at least %d %s", *least, what)
	}
	if most != nil && int64(n) > *most {
		w.fault(at, "should have at most %d %s", *most, what)
	}
}

// junctors looks at the schemas that a custom resource's schema joins: in these,
// values have rules and no new fields.
func (w *walk) junctors(s *spec.Schema, value any, at Path) {
	if !w.custom {
		return
	}
	for i := range s.AllOf {
		part := walk{schemas: w.schemas, custom: true, open: true}
		part.value(&s.AllOf[i], value, at)
		w.faults = append(w.faults, part.faults...)
	}
	if len(s.AnyOf) > 0 && w.fitting(s.AnyOf, value) == 0 {
		w.fault(at, "fits none of the alternatives that its schema has (anyOf)")
	}
	if n := w.fitting(s.OneOf, value); len(s.OneOf) > 0 && n != 1 {
		w.fault(at, "fits %d of the alternatives that its schema has, and should fit one (oneOf)", n)
	}
	if s.Not != nil && w.fitting([]spec.Schema{*s.Not}, value) == 1 {
		w.fault(at, "is what its schema excludes (not)")
	}
}

// fitting counts the schemas that a value fits.
func (w *walk) fitting(alternatives []spec.Schema, value any) (n int) {
	for i := range alternatives {
		try := walk{schemas: w.schemas, custom: true, open: true}
		try.value(&alternatives[i], value, nil)
		if len(try.faults) == 0 {
			n++
		}
	}
	return n
}

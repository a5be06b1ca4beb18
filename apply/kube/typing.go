package kube

import (
	"regexp"
	"strings"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/openapi"
)

// mistyped is what the API server says of a value of the wrong type. It quotes the
// value as Go writes it, or names its type in Go's words; of a Secret, it is masked.
var mistyped = regexp.MustCompile(`(?s): expected (string|boolean|map|list|any scalar|numeric \(int or float\)), ` +
	`got (&value\.valueUnstructured\{Value:.*?\}|&\{.*?\}|\*\*\*|string|bool|\[\]interface \{\}|map\[string\]interface \{\}|<nil>)(\n  \.|$)`)

// plainTyping puts the API server's errors of typing into words for who writes YAML,
// and leaves out the values: "must be a string, not a number, put it in quotes".
func plainTyping(text string) string {
	for {
		found := mistyped.FindStringSubmatchIndex(text)
		if found == nil {
			return text
		}
		want, got := text[found[2]:found[3]], text[found[4]:found[5]]
		text = text[:found[0]] + ": " + openapi.Mismatch(wantedType(want), quotedType(want, got)) + text[found[6]:]
	}
}

// wantedType puts the API server's name of a type into words.
func wantedType(want string) string {
	switch want {
	case "map":
		return "a mapping"
	case "numeric (int or float)":
		return "a number"
	case "any scalar":
		return "a single value"
	}
	return "a " + want
}

// quotedType reports which type a value is that the API server quotes. Where a
// mapping, a list or a boolean belongs, the quotation does not distinguish strings and
// numbers apart.
func quotedType(want, got string) string {
	value, isTold := strings.CutPrefix(got, "&value.valueUnstructured{Value:")
	plain, _ := strings.CutPrefix(got, "&{")
	switch {
	case got == "<nil>", value == "<nil>}", plain == "<nil>}":
		return "null"
	case got == "string", isTold && strings.HasPrefix(value, `"`):
		return "a string"
	case got == "bool", isTold && (value == "true}" || value == "false}"):
		return "a boolean"
	case strings.HasPrefix(got, "[]"), strings.HasPrefix(value, "[]"), strings.HasPrefix(plain, "["):
		return "a list"
	case strings.HasPrefix(got, "map["), strings.HasPrefix(value, "map["), strings.HasPrefix(plain, "map["):
		return "a mapping"
	case isTold:
		return "a number"
	case want == "boolean" && (plain == "true}" || plain == "false}"):
		return "a string"
	case got == manifest.Masked:
		return "this"
	}
	return "a single value"
}

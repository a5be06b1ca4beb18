package openapi

// Describe names the type of a value as a writer of YAML knows it.
func Describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	default:
		return "a mapping"
	}
}

// Mismatch words that one type stands where another belongs.
func Mismatch(want, got string) string {
	text := "must be " + want + ", not " + got
	switch {
	case want == "a string" && (got == "a number" || got == "a boolean"):
		text += ", put it in quotes"
	case got == "a string" && (want == "a number" || want == "an integer" || want == "a boolean"):
		text += ", which is what stands in quotes"
	}
	return text
}

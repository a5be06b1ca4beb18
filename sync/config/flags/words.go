package flags

import (
	"errors"
	"strings"
)

var errUnclosedQuote = errors.New("a quote is not closed")

// Split splits a text at white space as a shell does, and takes away single
// quotes, double quotes and backslashes. Nothing else has a meaning: a "$", "#" or
// "&" in a password stands for itself, as it did in the result of an expansion,
// where the shell script had its options. This is why no shell parser does the work:
// they would expand, drop comments, or refuse operators.
func Split(text string) ([]string, error) {
	var (
		words  []string
		word   strings.Builder
		inWord bool
	)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			continue
		case '\\':
			if i++; i == len(text) {
				return nil, errors.New("nothing follows the backslash at the end")
			}
			word.WriteByte(text[i])
		case '\'':
			length := strings.IndexByte(text[i+1:], '\'')
			if length < 0 {
				return nil, errUnclosedQuote
			}
			word.WriteString(text[i+1 : i+1+length])
			i += length + 1
		case '"':
			length, err := doubleQuoted(text[i+1:], &word)
			if err != nil {
				return nil, err
			}
			i += length
		default:
			word.WriteByte(c)
		}
		inWord = true
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// doubleQuoted appends what stands before the closing double quote, and returns the
// length of what it read, the quote included. A backslash is one unless it stands
// before a character that is special to a shell in this place.
func doubleQuoted(text string, word *strings.Builder) (int, error) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
			i++
			word.WriteByte(text[i])
		default:
			word.WriteByte(c)
		}
	}
	return 0, errUnclosedQuote
}

package repo

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxText bounds a message that a server had a part in, in bytes.
	maxText = 2 << 10
	// maxSubject bounds a commit's first line, which is shown in many places, in bytes.
	maxSubject = 256
)

// printable makes a text that others wrote fit for a log, a terminal and a page: what
// is no text is replaced, a line break becomes a space, and the rest is cut off.
func printable(text string, most int) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			r = ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		}
		if out.Len()+utf8.RuneLen(r) > most {
			out.WriteString("…")
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}

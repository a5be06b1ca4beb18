// Package printable makes what others have written fit for a log and a terminal: names
// and texts of repositories, servers' words, what programs print. Without it they could
// move a terminal's cursor, turn the direction of what follows, or forge a line.
//
// It is for what people read. Content that is sent on stays as it is.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text replaces control characters other than line feeds and tabs, what else breaks
// lines or turns their direction, and what is no UTF-8, by U+FFFD.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unprintable(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// Line is Text on one line: line feeds and tabs become blanks.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unprintable(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// unprintable reports the characters that do more to a terminal than to show themselves,
// and bytes that are none.
func unprintable(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

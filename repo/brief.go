package repo

import (
	"unicode/utf8"

	"github.com/kubesync/kubesync/internal/printable"
)

const (
	// maxText bounds a message that a server had a part in, in bytes.
	maxText = 2 << 10
	// maxSubject bounds a commit's first line, which is shown in many places, in bytes.
	maxSubject = 256
)

// brief makes a text that others wrote fit for a log, a terminal and a page: one line,
// and what is longer than so many bytes is cut off.
func brief(text string, most int) string {
	text = printable.Line(text)
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

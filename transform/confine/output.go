package confine

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/internal/printable"
)

const (
	maxLine  = 1000 // bytes of a line of output that are kept
	tailSize = 20   // lines of output that go into an error
)

// Output logs what a program prints, line by line at debug level, and remembers the
// last lines. Its writers may be used at the same time.
type Output struct {
	log zerolog.Logger
	// full is called when more is printed than there is room for, in bytes; nil if
	// no one minds. What comes then is dropped.
	full func()

	mu   sync.Mutex
	room int64
	tail []string
}

// NewOutput returns an output that logs, and for which there is any room.
func NewOutput(log zerolog.Logger) *Output { return &Output{log: log} }

// writer returns a writer for one of the program's streams; flush it at the end.
func (o *Output) writer(stream string) *lineWriter {
	return &lineWriter{out: o, stream: stream}
}

// Lines returns the last lines, oldest first.
func (o *Output) Lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.tail...)
}

// Quote formats the last lines for the end of an error.
func (o *Output) Quote() string {
	lines := o.Lines()
	if len(lines) == 0 {
		return ", without a word"
	}
	return "; its last lines:\n  " + strings.Join(lines, "\n  ")
}

func (o *Output) add(stream, line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log.Debug().Str("stream", stream).Msg(line)
	if len(o.tail) == tailSize {
		o.tail = append(o.tail[:0], o.tail[1:]...)
	}
	o.tail = append(o.tail, line)
}

// fits reports whether there is room for so many bytes more, and takes it.
func (o *Output) fits(bytes int) bool {
	if o.full == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	had := o.room
	if o.room -= int64(bytes); o.room >= 0 {
		return true
	}
	if had >= 0 {
		o.full()
	}
	return false
}

// lineWriter cuts one stream into lines.
type lineWriter struct {
	out    *Output
	stream string
	line   []byte
	cut    int // bytes of the line that were too many
}

// Write implements io.Writer; it never fails.
func (w *lineWriter) Write(data []byte) (int, error) {
	n := len(data)
	if !w.out.fits(n) {
		return n, nil
	}
	for {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		keep := min(len(line), maxLine-len(w.line))
		w.line = append(w.line, line[:keep]...)
		w.cut += len(line) - keep
		if !ended {
			return n, nil
		}
		w.end()
		data = rest
	}
}

// flush ends a last line that has no line break.
func (w *lineWriter) flush() {
	if len(w.line) > 0 {
		w.end()
	}
}

func (w *lineWriter) end() {
	line := printable.Text(strings.TrimRight(string(w.line), "\r"))
	if w.cut > 0 {
		line = fmt.Sprintf("%s… (%d bytes more)", line, w.cut)
	}
	w.out.add(w.stream, line)
	w.line, w.cut = w.line[:0], 0
}

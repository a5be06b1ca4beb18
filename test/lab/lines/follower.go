package lines

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Follower reads a file that grows, line by line.
type Follower struct {
	path string
	read int64
	rest []byte // the beginning of a line
}

// Follow returns a follower of the file at a path: of what is in it behind the first bytes,
// if that is not all new. The file need not be there yet.
func Follow(path string, behind int64) *Follower { return &Follower{path: path, read: behind} }

// Next calls each for every line that was completed since the last time, without its end.
// The error is that of the file.
func (f *Follower) Next(each func(line []byte)) error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("follow a log: %w", err)
	}
	defer func() { _ = file.Close() }()
	more, err := io.ReadAll(io.NewSectionReader(file, f.read, 1<<40))
	if err != nil {
		return fmt.Errorf("follow a log: %w", err)
	}
	f.read += int64(len(more))
	f.rest = append(f.rest, more...)
	for {
		line, rest, complete := bytes.Cut(f.rest, []byte("\n"))
		if !complete {
			return nil
		}
		f.rest = rest
		each(line)
	}
}

package openapi

import (
	"fmt"
	"strings"
)

// Fault is why the API server would not accept an object.
type Fault struct {
	Path Path
	Text string
}

// String returns "path: text", in the API server's way.
func (f Fault) String() string { return f.Path.String() + ": " + f.Text }

// Path leads to a value: names of fields, and indexes of items.
type Path []any

// String returns ".spec.containers[0].image".
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		if index, isIndex := step.(int); isIndex {
			fmt.Fprintf(&b, "[%d]", index)
		} else {
			fmt.Fprintf(&b, ".%s", step)
		}
	}
	return b.String()
}

// with returns the path one step further.
func (p Path) with(step any) Path { return append(p[:len(p):len(p)], step) }

package repo

import (
	"strings"
	"testing"

	"github.com/kubesync/kubesync/repo/refs"
)

// hash is an object's name, for what a server says of it.
const hash = "0123456789abcdef0123456789abcdef01234567"

// flushLine ends a message.
const flushLine = "0000"

// FuzzPackedRefs reads whatever a repository on disk may have for its packed refs.
func FuzzPackedRefs(f *testing.F) {
	for _, seed := range []string{
		"# pack-refs with: peeled fully-peeled sorted \n" + hash + " refs/heads/x\n" + hash + " refs/tags/v\n^" + hash + "\n",
		hash + " refs/heads/x", hash + " refs/heads/x\r\n", hash + "\n", "^" + hash + "\n", hash + " refs/tags/v\n^x", "#\n\n", "\x00", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		packed := packedRefs{rest: content}
		for {
			left := len(packed.rest)
			name, ref, err := packed.next()
			if err != nil {
				return
			}
			if len(packed.rest) >= left {
				t.Fatal("it does not come to an end")
			}
			if !refs.IsName(name.String()) || !strings.Contains(content, name.String()) || !strings.Contains(strings.ToLower(content), ref.hash.String()) {
				t.Errorf("made up: %s %q", ref.hash, name)
			}
		}
	})
}

package lines_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kubesync/kubesync/test/lab/lines"
)

func TestFollower(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	follower := lines.Follow(path, 0)
	var got []string
	next := func() error { return follower.Next(func(line []byte) { got = append(got, string(line)) }) }
	if err := next(); err == nil {
		t.Error("a file that is not there can be read")
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range []string{"one\ntw", "", "o\n\n", "three"} {
		if _, err := file.WriteString(part); err != nil {
			t.Fatal(err)
		}
		if err := next(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"one", "two", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got, follower = nil, lines.Follow(path, int64(len("one\n")))
	if err := next(); err != nil || len(got) != 2 || got[0] != "two" {
		t.Errorf("behind the first line there is %q, %v", got, err)
	}
}

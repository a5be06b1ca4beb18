package confine

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUsageOfWhatIsNoDirectory has a pipe and a link stand where a directory was when
// its name was read: neither holds the watch up, nor leads it elsewhere.
func TestUsageOfWhatIsNoDirectory(t *testing.T) {
	t.Parallel()
	elsewhere, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "file"), []byte("large"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link} {
		u := &usage{most: allowance{Dir: dir, Depth: 10}}
		if u.add(path, 0); u.files != 0 || u.bytes != 0 || u.found != nil {
			t.Errorf("%s: %+v", path, u)
		}
	}
}

// TestReadFields reads what the kernel says of this process, whatever its name holds.
func TestReadFields(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(name, []byte("Name:\ta) b\\n PPid: 7\nState:\tS (sleeping)\nPPid:\t345\nRssAnon:\t    1024 kB\nodd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if fields := readFields(name); len(fields) != 2 || fields["PPid"] != 345 || fields["RssAnon"] != 1024 {
		t.Errorf("%v", fields)
	}
	if fields := readFields("/proc/self/status"); fields["PPid"] != int64(os.Getppid()) {
		t.Errorf("the parent of this process is %d, not %d", fields["PPid"], os.Getppid())
	}
	if fields := readFields(filepath.Join(t.TempDir(), "ended")); len(fields) != 0 {
		t.Errorf("%v", fields)
	}
}

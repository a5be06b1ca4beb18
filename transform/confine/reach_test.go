package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// These tests are worth nothing on a kernel that cannot confine: that is a failure,
// not a reason to skip them.
func TestLandlockIsThere(t *testing.T) {
	t.Parallel()
	if LandlockABI() == 0 {
		t.Error("the kernel has no Landlock, so no test of the confinement says anything")
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	tools := filepath.Join(base, "tools", "bin")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Dir(tools), link); err != nil {
		t.Fatal(err)
	}
	where := &Workspace{dir: filepath.Join(base, "kubesync-x")}
	tests := map[string]struct {
		path      string
		protected []string
		reads     []string
		not       []string
		withheld  []string
	}{
		"usual":                 {path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", reads: []string{"/usr", "/usr/bin", "/etc/ssl", "/program"}, not: []string{"/", "/etc", "/proc", "/root", "/var", "/run", "/tmp"}},
		"tools elsewhere":       {path: tools + ":/usr/bin", reads: []string{tools}},
		"relative and odd ones": {path: "bin::.:/:/etc:/home:/tmp:/root", not: []string{"bin", "", ".", "/", "/etc", "/home", "/tmp", "/root"}},
		"the workspace":         {path: where.dir + "/INDIR:" + base, not: []string{where.dir + "/INDIR", base}, withheld: []string{where.dir + "/INDIR", base}},
		"protected file":        {path: tools, protected: []string{tools + "/key"}, not: []string{tools}, withheld: []string{tools}},
		"by another name":       {path: link + "/bin", protected: []string{tools}, not: []string{link + "/bin"}, withheld: []string{link + "/bin"}},
		"protected directory":   {path: tools, protected: []string{filepath.Dir(tools)}, not: []string{tools}, withheld: []string{tools}},
		"in /opt":               {path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", protected: []string{"/opt/creds/key"}, reads: []string{"/usr"}, not: []string{"/opt"}, withheld: []string{"/opt"}},
		"of another process":    {path: "/proc/1/root/bin", not: []string{"/proc/1/root/bin"}},
		"protected above":       {path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", protected: []string{"/etc"}, reads: []string{"/usr"}, not: []string{"/etc/ssl", "/etc/passwd"}},
		"token directory":       {path: "/run/secrets/bin", not: []string{"/run/secrets/bin"}, withheld: []string{"/run/secrets/bin"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			may, withheld := where.Reach("/program", test.path, test.protected)
			for _, dir := range test.reads {
				if !slices.Contains(may.Read, dir) {
					t.Errorf("%s may not be read", dir)
				}
			}
			for _, dir := range test.not {
				if slices.Contains(may.Read, dir) {
					t.Errorf("%s may be read", dir)
				}
			}
			if name != "protected above" && !slices.Equal(withheld, test.withheld) {
				t.Errorf("withheld: %v, want %v", withheld, test.withheld)
			}
		})
	}
}

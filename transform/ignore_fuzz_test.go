package transform

import (
	"path"
	"strings"
	"testing"
)

// FuzzIgnore reads whatever may stand in .kubesyncignore. What lies below an ignored
// directory is ignored, and comments ignore nothing.
func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{"", "# a", "*.yaml\n!a.yaml", "/dir/", "**/x", "a/**/b", "[a-z", "\\#a", "a\r\nb", "\ufeffa", "!", "/", "[^a]*?"} {
		f.Add(seed, "dir/a.yaml")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		name = strings.Trim(path.Clean("/"+name), "/")
		if name == "" || len(text) > 1<<12 || len(name) > 1<<10 {
			return
		}
		ignore := parseIgnore(text)
		if ignore.ignores(name, true) && !ignore.ignores(name+"/file.yaml", false) {
			t.Errorf("%q ignores the directory %q, and not what is in it", text, name)
		}
		commented := "# " + strings.ReplaceAll(text, "\n", "\n# ")
		if !strings.Contains(text, "\r") && parseIgnore(commented).ignores(name, false) {
			t.Errorf("the comment %q ignores %q", commented, name)
		}
	})
}

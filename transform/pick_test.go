package transform

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPick(t *testing.T) {
	t.Parallel()
	files := repo{
		"a.yaml": "a", "b.yml": "b", "c.json": "c", "README.md": "", "compose.YAML": "", ".hidden.yaml": "",
		"deploy/z.yaml": "z", "deploy/sub/y.yaml": "y", "deploy/.git/x.yaml": "", "deploy/sub.yaml/w.yaml": "w",
		"single/one.txt": "one",
	}
	with := func(more repo) repo {
		all := maps.Clone(files)
		maps.Copy(all, more)
		return all
	}
	tests := map[string]struct {
		repo    repo
		options Options
		source  Source
		files   string // names, separated by blanks
		err     string // part of the error
	}{
		"root":                {repo: files, source: Source{KindRoot, ".", ""}, files: "a.yaml b.yml c.json"},
		"root at any depth":   {repo: files, options: Options{Recursive: true}, source: Source{KindRoot, ".", ""}, files: "a.yaml b.yml c.json deploy/sub.yaml/w.yaml deploy/sub/y.yaml deploy/z.yaml"},
		"directory":           {repo: files, options: Options{YMLDir: "deploy"}, source: Source{KindYMLDir, "deploy", ""}, files: "deploy/z.yaml"},
		"spelled differently": {repo: files, options: Options{YMLDir: "./deploy/"}, source: Source{KindYMLDir, "deploy", ""}, files: "deploy/z.yaml"},
		"whole repository":    {repo: files, options: Options{YMLDir: "."}, source: Source{KindYMLDir, ".", ""}, files: "a.yaml b.yml c.json"},
		"at any depth":        {repo: files, options: Options{YMLDir: "deploy", Recursive: true}, source: Source{KindYMLDir, "deploy", ""}, files: "deploy/sub.yaml/w.yaml deploy/sub/y.yaml deploy/z.yaml"},
		"single file":         {repo: files, options: Options{YMLDir: "single/one.txt"}, source: Source{KindYMLDir, "single/one.txt", ""}, files: "single/one.txt"},
		"missing directory":   {repo: files, options: Options{YMLDir: "nowhere"}, err: `YMLDIR "nowhere": nothing is applied or pruned: nowhere is not there`},
		"below a file":        {repo: files, options: Options{YMLDir: "a.yaml/x"}, err: "a.yaml/x"},
		"conventional":        {repo: with(repo{"kubernetes/k.yaml": ""}), options: Options{ConventionalDir: true}, source: Source{KindConventional, "kubernetes", ""}, files: "kubernetes/k.yaml"},
		"conventional is off": {repo: with(repo{"kubernetes/k.yaml": ""}), source: Source{KindRoot, ".", ""}, files: "a.yaml b.yml c.json"},
		"no conventional":     {repo: files, options: Options{ConventionalDir: true}, source: Source{KindRoot, ".", ""}, files: "a.yaml b.yml c.json"},
		"conventional a file": {repo: with(repo{"kubernetes": ""}), options: Options{ConventionalDir: true}, source: Source{KindRoot, ".", ""}, files: "a.yaml b.yml c.json"},
		"conventional a link": {repo: with(repo{"kubernetes": "-> deploy"}), options: Options{ConventionalDir: true}, source: Source{KindConventional, "kubernetes", ""}, files: "kubernetes/z.yaml"},
		"conventional leaves": {repo: with(repo{"kubernetes": "-> ../deploy"}), options: Options{ConventionalDir: true}, err: "symbolic link kubernetes points to ../deploy"},
		"YMLDIR wins":         {repo: with(repo{"kubernetes/k.yaml": ""}), options: Options{ConventionalDir: true, YMLDir: "deploy"}, source: Source{KindYMLDir, "deploy", ""}, files: "deploy/z.yaml"},
		"hidden YMLDIR":       {repo: repo{".deploy/a.yaml": ""}, options: Options{YMLDir: ".deploy"}, source: Source{KindYMLDir, ".deploy", ""}, files: ".deploy/a.yaml"},
		"empty repository":    {repo: repo{"x": ""}, source: Source{KindRoot, ".", ""}, files: ""},
		"ignored":             {repo: with(repo{".kubesyncignore": "# not these\nb.yml\r\n*.json\n\ndeploy/*\n!deploy/z.yaml\n"}), options: Options{Recursive: true}, source: Source{KindRoot, ".", ""}, files: "a.yaml deploy/z.yaml"},
		"ignored directory":   {repo: with(repo{".kubesyncignore": "deploy/\n"}), options: Options{Recursive: true}, source: Source{KindRoot, ".", ""}, files: "a.yaml b.yml c.json"},
		"ignored at root":     {repo: with(repo{".kubesyncignore": "/z.yaml\n/a.yaml"}), options: Options{Recursive: true}, source: Source{KindRoot, ".", ""}, files: "b.yml c.json deploy/sub.yaml/w.yaml deploy/sub/y.yaml deploy/z.yaml"},
		"ignored above":       {repo: with(repo{".kubesyncignore": "deploy\n"}), options: Options{YMLDir: "deploy/sub"}, source: Source{KindYMLDir, "deploy/sub", ""}, files: ""},
		"ignored and named":   {repo: with(repo{".kubesyncignore": "*\n"}), options: Options{YMLDir: "a.yaml"}, source: Source{KindYMLDir, "a.yaml", ""}, files: "a.yaml"},
		"ignores elsewhere":   {repo: with(repo{"deploy/.kubesyncignore": "*\n"}), options: Options{YMLDir: "deploy"}, source: Source{KindYMLDir, "deploy", ""}, files: "deploy/z.yaml"},
		"not UTF-8":           {repo: repo{"a.yaml": "a", "caf\xe9.yaml": ""}, err: `the name of "caf\xe9.yaml" is not UTF-8: rename it (if it is not meant to be applied, name it in .kubesyncignore)`},
		"not UTF-8, ignored":  {repo: repo{"a.yaml": "a", "A.yaml": "A", "caf\xe9": "", "dir\xff/a.yaml": "", "caf\xe9.yaml": "", ".kubesyncignore": "caf*\n"}, source: Source{KindRoot, ".", ""}, files: "A.yaml a.yaml"},
		"directory not UTF-8": {repo: repo{"a.yaml": "a", "dir\xff/a.yaml": ""}, options: Options{Recursive: true}, err: `the name of "dir\xff" is not UTF-8`},
		"link not UTF-8":      {repo: repo{"a.yaml": "a", "l\xff.yaml": "-> a.yaml"}, err: `the name of "l\xff.yaml" is not UTF-8`},
		"ignore is a link":    {repo: with(repo{".kubesyncignore": "-> /etc/passwd"}), err: "read .kubesyncignore: symbolic link .kubesyncignore points to /etc/passwd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := newTransform(t, test.options).Run(t.Context(), test.repo.input("1"))
			if !checkError(t, err, test.err) {
				return
			}
			if result.Source != test.source {
				t.Errorf("source %v, want %v", result.Source, test.source)
			}
			if names := names(t, result.Files); names != test.files {
				t.Errorf("files %s, want %s", names, test.files)
			}
			if (test.files == "") != (len(result.Notes) == 1) {
				t.Errorf("notes %q", result.Notes)
			}
			if err := fstest.TestFS(result.Files, strings.Fields(test.files)...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPickThroughLinks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		repo  repo
		flat  string // names of the result, or what follows "error:" is part of it
		depth string // the same at any depth
	}{
		"file":                      {repo{"a.yaml": "-> d/b", "d/b": "x"}, "a.yaml", "a.yaml"},
		"chain":                     {repo{"a.yaml": "-> d/b", "d/b": "-> ../c", "c": "x"}, "a.yaml", "a.yaml"},
		"through a directory":       {repo{"a.yaml": "-> l/b", "l": "-> d", "d/b": "x"}, "a.yaml", "a.yaml"},
		"directory":                 {repo{"l": "-> d", "d/b.yaml": "x"}, "", "d/b.yaml l/b.yaml"},
		"directory named like one":  {repo{"l.yaml": "-> d", "d/b.yaml": "x"}, "", "d/b.yaml l.yaml/b.yaml"},
		"out by dots":               {repo{"a.yaml": "-> ../b"}, "error:symbolic link a.yaml points to ../b: only targets inside the repository", "error:points to ../b"},
		"out by dots below":         {repo{"d/a.yaml": "-> ../../b"}, "", "error:symbolic link d/a.yaml points to ../../b"},
		"out and in again":          {repo{"a.yaml": "-> ../x/b", "b": "x"}, "error:a.yaml points to ../x/b", "error:a.yaml points to ../x/b"},
		"absolute":                  {repo{"a.yaml": "-> /etc/passwd"}, "error:symbolic link a.yaml points to /etc/passwd", "error:a.yaml points to /etc/passwd"},
		"absolute at the end":       {repo{"a.yaml": "-> b", "b": "-> /etc/passwd"}, "error:symbolic link b points to /etc/passwd", "error:b points to /etc/passwd"},
		"directory outside":         {repo{"l": "-> /etc", "a.yaml": "x"}, "a.yaml", "error:symbolic link l points to /etc"},
		"ignored":                   {repo{"a.yaml": "-> /etc/passwd", "l": "-> /etc", ".kubesyncignore": "a.yaml\nl"}, "", ""},
		"ignored directory":         {repo{"l": "-> d", "d/b.yaml": "", ".kubesyncignore": "l/"}, "", "d/b.yaml"},
		"hidden":                    {repo{".a.yaml": "-> /etc/passwd", ".l": "-> /etc"}, "", ""},
		"dangling":                  {repo{"a.yaml": "-> nowhere"}, "error:follow symbolic link a.yaml", "error:a.yaml"},
		"dangling, no manifest":     {repo{"a": "-> nowhere", "b.yaml": "x"}, "b.yaml", "b.yaml"},
		"itself":                    {repo{"a.yaml": "-> a.yaml"}, "error:the links go in a circle", "error:the links go in a circle"},
		"each other":                {repo{"a.yaml": "-> b.yaml", "b.yaml": "-> a.yaml"}, "error:in a circle", "error:in a circle"},
		"directory above":           {repo{"d/l": "-> ..", "d/a.yaml": "x"}, "", "error:symbolic link d/l leads back"},
		"directory itself":          {repo{"d/l": "-> .", "d/a.yaml": "x"}, "", "error:symbolic link d/l leads back"},
		"two directories in circle": {repo{"d/l": "-> ../e", "e/l": "-> ../d"}, "", "error:leads back"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for recursive, want := range map[bool]string{false: test.flat, true: test.depth} {
				result, err := newTransform(t, Options{Recursive: recursive}).Run(t.Context(), test.repo.input("1"))
				wantErr, isErr := strings.CutPrefix(want, "error:")
				if !isErr {
					wantErr = ""
				}
				if checkError(t, err, wantErr) && names(t, result.Files) != want {
					t.Errorf("recursive %v: files %s, want %s", recursive, names(t, result.Files), want)
				}
			}
		})
	}
}

// Directories that link to each other must not keep us busy for ever.
func TestPickManyLinks(t *testing.T) {
	t.Parallel()
	files := repo{}
	for level := range 30 {
		dir, next := string(rune('a'+level%26))+strings.Repeat("x", level/26), string(rune('a'+(level+1)%26))+strings.Repeat("x", (level+1)/26)
		files[path.Join(dir, "l")] = "-> ../" + next
		files[path.Join(dir, "m")] = "-> ../" + next
	}
	_, err := newTransform(t, Options{Recursive: true}).Run(t.Context(), files.input("1"))
	checkError(t, err, `the limit "entries"`)
}

// hashedFS is a file system whose files know their hash, as a revision's do.
type hashedFS struct{ fstest.MapFS }

type hashedInfo struct{ fs.FileInfo }

func (hashedInfo) Hash() string { return "0123abcd" }

func (h hashedFS) Lstat(name string) (fs.FileInfo, error) {
	info, err := h.MapFS.Lstat(name)
	return hashedInfo{info}, err
}

func TestPickKeepsHash(t *testing.T) {
	t.Parallel()
	files := repo{"a.yaml": "a"}
	result, err := newTransform(t, Options{}).Run(t.Context(), Input{Revision: "1", Files: hashedFS{files.fs()}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := fs.Stat(result.Files, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if hash := info.(interface{ Hash() string }).Hash(); hash != "0123abcd" {
		t.Errorf("hash %q", hash)
	}
}

// What is in a submodule cannot be read: that is an error, not an empty directory.
type submoduleFS struct{ fstest.MapFS }

func (s submoduleFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "module" {
		return nil, errors.New("module is a submodule, which is not followed")
	}
	return s.MapFS.ReadDir(name)
}

func TestPickSubmodule(t *testing.T) {
	t.Parallel()
	files := submoduleFS{repo{"a.yaml": "", "module/b.yaml": ""}.fs()}
	for name, options := range map[string]Options{"walked into": {Recursive: true}, "named": {YMLDir: "module"}} {
		_, err := newTransform(t, options).Run(t.Context(), Input{Revision: "1", Files: files})
		t.Log(name)
		checkError(t, err, "module is a submodule")
	}
	result, err := newTransform(t, Options{}).Run(t.Context(), Input{Revision: "1", Files: files})
	if err != nil || names(t, result.Files) != "a.yaml" {
		t.Errorf("beside a submodule: %v", err)
	}
}

func TestParseDir(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", ".": ".", "a": "a", "./a/": "a", "a//b/../c": "a/c",
		"..": "error", "../a": "error", "a/../..": "error", "/a": "error", "/": "error", "a\x00": "error",
	} {
		dir, err := ParseDir(text)
		if err != nil {
			dir = "error"
		}
		if dir != want {
			t.Errorf("ParseDir(%q) is %q (%v), want %q", text, dir, err, want)
		}
	}
	if _, err := New(Options{YMLDir: "../a"}); err == nil || !strings.Contains(err.Error(), "YMLDIR") {
		t.Errorf("New with a YMLDIR outside: %v", err)
	}
}

func FuzzPick(f *testing.F) {
	f.Add("*.yaml\n!b.yaml\n/d/", "d/a.yaml", "../b", "d")
	f.Add("d/**/a.yaml", "d/e/a.yaml", "/etc/passwd", ".")
	f.Add("[", "l/l/l", "l", "l")
	f.Add("!\n/\n\\ \n**", ".hidden/x.yaml", ".", "./x/../d")
	f.Fuzz(func(t *testing.T, ignore, name, target, dir string) {
		if !fs.ValidPath(name) || name == "." || strings.HasPrefix("link.yaml/", name+"/") || strings.HasPrefix(name, "link.yaml/") {
			return
		}
		files := repo{"x.yaml": "x", "link.yaml": "-> " + target}
		files[name] = "y"
		if name != ignoreFile && !strings.HasPrefix(name, ignoreFile+"/") {
			files[ignoreFile] = ignore
		}
		made, err := New(Options{YMLDir: dir, Recursive: true})
		if err != nil {
			return
		}
		result, err := made.Run(t.Context(), Input{Revision: "1", Files: plainFS{files.fs()}})
		if err != nil {
			return
		}
		for name := range contents(t, result.Files) {
			if !below(name, result.Source.Dir) && result.Source.Dir != "." {
				t.Errorf("%q is not below %q", name, result.Source.Dir)
			}
		}
	})
}

// plainFS hides kustomizations, so that a fuzzer does not start processes.
type plainFS struct{ fstest.MapFS }

func (p plainFS) Lstat(name string) (fs.FileInfo, error) {
	if strings.Contains(strings.ToLower(path.Base(name)), "kustomization") {
		return nil, fs.ErrNotExist
	}
	return p.MapFS.Lstat(name)
}

// checkError compares an error with the part of its text that is wanted, "" for no
// error. It returns true if there is a result to look at.
func checkError(t *testing.T, err error, wants string) bool {
	t.Helper()
	switch {
	case wants == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case wants != "" && (err == nil || !strings.Contains(err.Error(), wants)):
		t.Errorf("error %v, want one with %q", err, wants)
	}
	return err == nil && wants == ""
}

// names lists the files of a result, separated by blanks.
func names(t *testing.T, files fs.FS) string {
	t.Helper()
	return strings.Join(slices.Sorted(maps.Keys(contents(t, files))), " ")
}

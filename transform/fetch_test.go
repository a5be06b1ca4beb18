package transform

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// far is a revision whose files have to be fetched. It counts requests, and what was
// read without being fetched first.
type far struct {
	fstest.MapFS
	requests  int
	held      map[string]bool
	surprises []string
	fails     error
}

func (f *far) Fetch(_ context.Context, names ...string) error {
	f.requests++
	for _, name := range names {
		f.held[name] = true
	}
	return f.fails
}

func (f *far) FetchFiles(_ context.Context, files ...fs.FileInfo) error {
	f.requests++
	for _, file := range files {
		f.held[file.(farInfo).path] = true
	}
	return f.fails
}

// farInfo describes a file by a hash: the name is as good as any.
type farInfo struct {
	fs.FileInfo
	path string
}

func (i farInfo) Hash() string { return i.path }

type farEntry struct {
	fs.DirEntry
	path string
}

func (e farEntry) Info() (fs.FileInfo, error) {
	info, err := e.DirEntry.Info()
	return farInfo{info, e.path}, err
}

func (f *far) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.MapFS.ReadDir(name)
	for i, entry := range entries {
		entries[i] = farEntry{entry, path.Join(name, entry.Name())}
	}
	return entries, err
}

func (f *far) Lstat(name string) (fs.FileInfo, error) {
	info, err := f.MapFS.Lstat(name)
	if err != nil {
		return nil, err
	}
	return farInfo{info, name}, nil
}

func (f *far) FetchBelow(context.Context, string) error {
	f.requests++
	return f.fails
}

// Keep implements fetcher: nothing is held that was not fetched of this revision.
func (f *far) Keep(fs.FileInfo) bool { return false }

func (f *far) read(name string) {
	if !f.held[name] && !slices.Contains(f.surprises, name) {
		f.surprises = append(f.surprises, name)
	}
}

func (f *far) ReadFile(name string) ([]byte, error) {
	f.read(name)
	return f.MapFS.ReadFile(name)
}

func (f *far) ReadLink(name string) (string, error) {
	f.read(name)
	return f.MapFS.ReadLink(name)
}

// TestFetch looks whether all that is read was fetched before, in few requests.
func TestFetch(t *testing.T) {
	t.Parallel()
	plain := repo{
		".kubesyncignore": "b.yaml", "dir/a.yaml": "a", "dir/b.yaml": "b", "dir/c.yaml": "-> ../else/c", "dir/d.yaml": "-> ../else/d",
		"else/c": "c", "else/d": "d", "dir/sub/e.yaml": "e", "dir/readme": "-> a.yaml",
	}
	built := repo{
		"app/kustomization.yaml":    "resources: [../base, own.yaml]\npatches: [{path: patch.yaml}]\nconfigMapGenerator: [{name: g, files: [k=../text/f]}]\n",
		"app/own.yaml":              "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}",
		"app/patch.yaml":            "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {a: b}}",
		"app/unused.yaml":           "unused",
		"base/kustomization.yml":    "resources: [deep]\n",
		"base/deep/Kustomization":   "resources: [cm.yaml]\n",
		"base/deep/cm.yaml":         "{apiVersion: v1, kind: ConfigMap, metadata: {name: deep}}",
		"text/f":                    "f",
		"broken/kustomization.yaml": "resources: [",
	}
	for name, test := range map[string]struct {
		files    repo
		options  Options
		requests int
		fails    string
	}{
		"a directory":     {plain, Options{YMLDir: "dir"}, 3, ""},
		"all levels":      {plain, Options{YMLDir: "dir", Recursive: true}, 4, ""},
		"a kustomization": {built, Options{YMLDir: "app"}, 7, ""},
		"a broken one":    {built, Options{YMLDir: "broken"}, 2, "broken/kustomization.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := &far{MapFS: test.files.fs(), held: map[string]bool{}}
			transform, err := New(test.options)
			if err != nil {
				t.Fatal(err)
			}
			result, err := transform.Run(t.Context(), Input{Revision: "1", Files: from})
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("got %v", err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else {
				err = fs.WalkDir(result.Files, ".", func(name string, d fs.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						_, err = fs.ReadFile(result.Files, name)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			if len(from.surprises) > 0 || from.requests != test.requests {
				t.Errorf("%d requests; read unfetched: %v", from.requests, from.surprises)
			}
			if from.held["app/unused.yaml"] {
				t.Error("what nothing refers to was fetched")
			}
		})
	}
}

// TestFetchFails takes nothing of a revision that cannot be fetched.
func TestFetchFails(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for _, options := range []Options{{YMLDir: "dir"}, {YMLDir: "dir", Recursive: true}, {YMLDir: "app"}} {
		files := repo{"dir/a.yaml": "a", "app/kustomization.yaml": "resources: []"}
		transform, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		from := &far{MapFS: files.fs(), held: map[string]bool{}, fails: gone}
		if _, err := transform.Run(t.Context(), Input{Revision: "1", Files: from}); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	}
}

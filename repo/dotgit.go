package repo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/repo/pack"
)

// gitConfig is a checkout's configuration. The index has times and sizes of the
// files but no inodes and owners, which are found out differently on each
// system; the two settings make git content with that.
const gitConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	checkStat = minimal
	trustctime = false
[remote "origin"]
	url = %s
	fetch = +refs/heads/*:refs/remotes/origin/*
`

// dotGit is what a checkout's .git is made of.
type dotGit struct {
	commit  *object.Commit
	objects *pack.Pack
	origin  URL
	refs    map[plumbing.ReferenceName]plumbing.Hash
}

// wanted is the .git directory: what git clone --depth 1 makes, with HEAD on no
// branch, all in as few files as git allows. The index is not in it.
func (d dotGit) wanted() (wanted, error) {
	index, err := d.objects.Index()
	if err != nil {
		return wanted{}, err
	}
	packed, err := d.wantedPack()
	if err != nil {
		return wanted{}, err
	}
	name := "pack-" + d.objects.Checksum.String()
	list := map[string]wanted{
		"HEAD":   wantedFile([]byte(d.commit.Hash.String() + "\n")),
		"config": wantedFile(fmt.Appendf(nil, gitConfig, quoteConfig(d.origin.String()))),
		"refs":   wantedDir(nil),
		"objects": wantedDir(map[string]wanted{
			"pack": wantedDir(map[string]wanted{name + ".pack": packed, name + ".idx": wantedFile(index)}),
		}),
	}
	if len(d.commit.ParentHashes) > 0 {
		list["shallow"] = wantedFile([]byte(d.commit.Hash.String() + "\n"))
	}
	if len(d.refs) > 0 {
		list["packed-refs"] = wantedFile(d.packedRefs())
	}
	return wantedDir(list), nil
}

func (d dotGit) wantedPack() (wanted, error) {
	data := d.objects.Reader()
	hasher := plumbing.NewHasher(plumbing.BlobObject, data.Size())
	if _, err := io.Copy(hasher, data); err != nil {
		return wanted{}, err
	}
	return wanted{
		mode: filemode.Regular,
		hash: hasher.Sum(),
		read: func() (io.ReadCloser, error) { return io.NopCloser(d.objects.Reader()), nil },
	}, nil
}

// packedRefs are the refs as git packs them, less the hints what tags lead to.
func (d dotGit) packedRefs() []byte {
	out := []byte("# pack-refs with: sorted\n")
	for _, name := range slices.Sorted(maps.Keys(d.refs)) {
		out = fmt.Appendf(out, "%s %s\n", d.refs[name], name)
	}
	return out
}

// quoteConfig writes a value of a git configuration file.
func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// checkout makes dir hold a commit's files and a .git.
func checkout(ctx context.Context, dir string, d dotGit) error {
	root, err := openRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	git, err := d.wanted()
	if err != nil {
		return err
	}
	files := restorer{root: root, limits: d.objects.Limits()}
	want := wantedTree(d.objects, d.commit.TreeHash)
	withGit := wanted{mode: filemode.Dir, list: func() (map[string]wanted, error) {
		list, err := want.list()
		if err == nil {
			list[".git"] = git // no tree has one, pack.ReadTree sees to that
		}
		return list, err
	}}
	if err := files.dir(ctx, ".", withGit); err != nil {
		return err
	}
	return writeIndex(root, files.entries)
}

// writeIndex writes .git/index, by which git knows what is changed without
// reading it.
func writeIndex(root *os.Root, entries []*index.Entry) error {
	idx := &index.Index{Version: 2}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, ".git/") {
			idx.Entries = append(idx.Entries, e)
		}
	}
	var out bytes.Buffer
	if err := index.NewEncoder(&out).Encode(idx); err != nil {
		return err
	}
	return root.WriteFile(".git/index", out.Bytes(), 0o644)
}

package repo

import (
	"fmt"
	"maps"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// What a store holds follows what is in use, however many revisions went by, and
// nothing of that is lost.
func TestStoreFollowsWhatIsUsed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes eighty commits with git: 8 s of CPU time")
	}
	server := gitserver.Start(t)
	site, err := server.CreateRepo("site")
	must(t, err)
	files := large(64)
	_, err = site.Commit("first", files)
	must(t, err)
	r := open(t, server.URL("site"), "branch:master")
	for i := range 80 {
		files[fmt.Sprintf("used/%02d.yaml", i*7%64)] = fmt.Sprintf("changed in %d", i)
		if i%10 == 9 {
			delete(files, fmt.Sprintf("used/%02d.yaml", i*7%64))
		}
		_, err = site.Commit(fmt.Sprint(i), files)
		must(t, err)
		rev := resolve(t, r)
		want := maps.Clone(files)
		maps.DeleteFunc(want, func(name, _ string) bool { return name[:4] != "used" })
		if got := use(t, r, rev); !maps.Equal(got, want) {
			t.Fatalf("revision %d: got %d files, want %d", i, len(got), len(want))
		}
		resolve(t, r) // lets go of the revision before
		s := r.current.objects.(*store)
		held, needed := 0, map[plumbing.Hash]bool{}
		for _, p := range s.packs {
			held += p.Len()
			for _, hash := range p.Those(func(plumbing.Hash) bool { return true }) {
				needed[hash] = true
			}
		}
		if len(s.packs) > 8 || held > 3*(len(want)+4) || len(needed) < len(want) {
			t.Fatalf("revision %d: %d packs hold %d objects, %d of them different, for %d files", i, len(s.packs), held, len(needed), len(want))
		}
	}
}

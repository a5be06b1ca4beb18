package prune_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/prune"
)

const revision = "0123456789012345678901234567890123456789"

func TestApproval(t *testing.T) {
	t.Parallel()
	a := prune.Object{UID: "1", Name: "ConfigMap/shop/a"}
	b := prune.Object{UID: "2", Name: "ConfigMap/shop/b"}
	b2 := prune.Object{UID: "3", Name: "ConfigMap/shop/b"} // made anew meanwhile
	going := []prune.Object{a, b}
	for name, test := range map[string]struct {
		text   string
		covers string // why it does not cover what goes
	}{
		"none":                    {"", "there is none"},
		"the revision alone":      {revision, "it does not say what goes"},
		"a number":                {revision + ",2", ""},
		"leading zeros":           {revision + ",002", ""},
		"another number":          {revision + ",3", "it is for 3 objects, and 2 would go"},
		"a hash":                  {revision + "," + prune.Hash([]prune.Object{b, a}), ""},
		"a hash of others":        {revision + "," + prune.Hash([]prune.Object{a, b2}), "it is for other objects"},
		"a hash and a number":     {revision + ",2," + prune.Hash(going), ""},
		"one of both is wrong":    {revision + ",1," + prune.Hash(going), "it is for 1 objects"},
		"abbreviated":             {revision[:7] + ",2", ""},
		"abbreviated too much":    {revision[:6] + ",2", "it is for revision 012345"},
		"another revision":        {"f" + revision[1:] + ",2", "it is for revision f"},
		"names":                   {revision + ",ConfigMap/shop/a", "it names single objects"},
		"blanks":                  {" " + revision + " , 2 ", ""},
		"a name and a number":     {revision + ",ConfigMap/shop/x,2", ""},
		"no revision, but commas": {",2", "there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			approval, err := prune.ParseApproval(test.text)
			if err != nil {
				t.Fatal(err)
			}
			switch err := approval.Covers(revision, going); {
			case test.covers == "" && err != nil:
				t.Errorf("does not cover: %v", err)
			case test.covers != "" && (err == nil || !strings.Contains(err.Error(), test.covers)):
				t.Errorf("covers: %v, want %q", err, test.covers)
			}
		})
	}
}

func TestApprovalOfOne(t *testing.T) {
	t.Parallel()
	given, err := prune.ParseApproval(revision + ",PersistentVolumeClaim/shop/db,Namespace/old,2")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"Namespace/old": true, "PersistentVolumeClaim/shop/db": true, "PersistentVolumeClaim/shop/d": false, "Namespace/old/": false, "": false} {
		if got := given.NamesOne(revision, name); got != want {
			t.Errorf("%q is named: %v", name, got)
		}
	}
	if given.NamesOne("f"+revision[1:], "Namespace/old") {
		t.Error("an object is approved of another revision")
	}
	if got := given.Spent(true, nil).String(); got != revision+",PersistentVolumeClaim/shop/db,Namespace/old" {
		t.Errorf("what is left when the number is used up: %q", got)
	}
	if got := given.Spent(false, map[string]bool{"Namespace/old": true}).String(); got != revision+",2,PersistentVolumeClaim/shop/db" {
		t.Errorf("what is left when one is gone: %q", got)
	}
	if got := given.Spent(true, map[string]bool{"Namespace/old": true, "PersistentVolumeClaim/shop/db": true}).String(); got != "" {
		t.Errorf("what is left of nothing: %q", got)
	}
}

func TestApprovalMalformed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{revision + ",all", revision + ",12345678", revision + ",-1", revision + ",0123456789AB", revision + ",2 3"} {
		if _, err := prune.ParseApproval(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// What is read says the same when it is written and read again, and an approval without
// number, hash and names covers nothing.
func FuzzApproval(f *testing.F) {
	for _, seed := range []string{"", revision, revision + ",2", revision + ",ab12ab12ab12,A/b", ",,", "0123456,0"} {
		f.Add(seed, 2)
	}
	f.Fuzz(func(t *testing.T, text string, count int) {
		approval, err := prune.ParseApproval(text)
		if err != nil {
			return
		}
		again, err := prune.ParseApproval(approval.String())
		if err != nil || again.String() != approval.String() {
			t.Errorf("%q is read as %q, and that as %q: %v", text, approval, again, err)
		}
		going := make([]prune.Object, max(0, count)%1000)
		covers := approval.Covers(revision, going) == nil
		if covers && (!approval.For(revision) || approval.Count == "" && approval.Hash == "") {
			t.Errorf("%q covers what it does not tell", text)
		}
	})
}

func TestRecord(t *testing.T) {
	t.Parallel()
	r := prune.Record{}
	uids := []types.UID{"a", "b", "c", "d"}
	for _, uid := range uids {
		r.Add(uid)
	}
	r.Remove("d")
	read := prune.Decode(r.Encode(100))
	if !read.Has("a") || !read.Has("c") || read.Has("d") || read.Has("") || len(read) != 3 {
		t.Errorf("%d of 3 are read", len(read))
	}
	if got := prune.Decode(r.Encode(2)); len(got) != 2 {
		t.Errorf("%d are kept of at most 2", len(got))
	}
	if got := prune.Decode(append(r.Encode(100), 1, 2, 3)); len(got) != 3 {
		t.Errorf("what is no key is read: %d", len(got))
	}
	read.Keep(prune.Record{prune.KeyOf("a"): {}, prune.KeyOf("x"): {}})
	if !read.Has("a") || len(read) != 1 {
		t.Errorf("%d are kept of 1", len(read))
	}
	const uuid = "589f91c3-b09f-466c-9a00-f294d0f91a03"
	if key := prune.KeyOf(uuid); fmt.Sprintf("%x", key) != "589f91c3b09f466c9a00" || key == prune.KeyOf("589f91c3-b09f-466c-9a01-f294d0f91a03") {
		t.Errorf("the key of %s is %x", uuid, key)
	}
	if prune.KeyOf("x89f91c3-b09f-466c-9a00-f294d0f91a03") == prune.KeyOf("y89f91c3-b09f-466c-9a00-f294d0f91a03") {
		t.Error("texts that are no UUIDs have the same key")
	}
	if prune.Record(nil).Has("a") || len(prune.Record(nil).Encode(9)) != 0 {
		t.Error("nothing has something")
	}
}

func TestRendering(t *testing.T) {
	t.Parallel()
	recorded := prune.Rendering{"the tier": "system", "CMD": prune.HashText("make manifests"), "RECURSIVE": "on"}
	now := prune.Rendering{"the tier": "application", "CMD": prune.HashText("make other")}
	want := []string{"CMD changed", `RECURSIVE changed from "on" to ""`, `the tier changed from "system" to "application"`}
	if got := now.Changes(recorded); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := now.Changes(nil); got != nil {
		t.Errorf("changes to nothing: %q", got)
	}
	if got := recorded.Changes(recorded); got != nil {
		t.Errorf("changes to itself: %q", got)
	}
	if text := prune.HashText("s3cret"); strings.Contains(text, "s3cret") || prune.HashText("") != "" {
		t.Errorf("hash: %q", text)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for bits := range 16 {
		o := prune.Ownership{Label: bits&1 != 0, Entry: bits&2 != 0, Recorded: bits&4 != 0, Named: bits&8 != 0}
		want := prune.Foreign
		if o.Label && o.Entry {
			want = prune.Copied
			if o.Recorded || o.Named {
				want = prune.Own
			}
		}
		if got := o.Verdict(); got != want {
			t.Errorf("%+v: %v, want %v", o, got, want)
		}
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hold prune.Hold
		want []string
	}{
		"nothing":  {prune.Hold{Declared: 1}, nil},
		"empty":    {prune.Hold{}, []string{"the revision declares no objects at all"}},
		"failed":   {prune.Hold{Declared: 1, Failed: 1}, []string{"1 object could not be applied (pruning goes on by itself when that is resolved)"}},
		"pending":  {prune.Hold{Declared: 2, Waiting: 2}, []string{"2 objects pending (pruning goes on by itself when that is resolved)"}},
		"unseen":   {prune.Hold{Declared: 1, Unseen: []string{"Widget.example.com"}}, []string{"what is left of Widget.example.com is not known (pruning goes on by itself when that is resolved)"}},
		"the rest": {prune.Hold{Declared: 1, Limit: "too many", Changes: []string{"CMD changed"}}, []string{"too many", "CMD changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.hold.Reasons(); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

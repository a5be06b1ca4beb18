package limits

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for l := range Limit(count) {
		b := l.bound()
		if b.name == "" || strings.ContainsAny(b.name, "=, ") || b.what == "" || b.why == "" || b.most <= 0 || b.most > largest {
			t.Errorf("limit %d is not complete: %+v", l, b)
		}
		if seen[b.name] {
			t.Errorf("%s is there twice", b.name)
		}
		seen[b.name] = true
		got, err := Parse(b.name + "=" + b.unit.plain(b.most))
		if err != nil || got.Of(l) != b.most {
			t.Errorf("the default of %s, %s, is read as %d: %v", b.name, b.unit.plain(b.most), got.Of(l), err)
		}
	}
	if len(Bounds()) != count {
		t.Errorf("%d of %d are documented", len(Bounds()), count)
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(" manifests=512Mi,expansion=64M\nentries=500k ")
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[Limit]int64{
		Manifests: 512 << 20, Expansion: 64e6, Entries: 500_000, List: List.bound().most,
	} {
		if got.Of(limit) != want {
			t.Errorf("%s is %d, want %d", limit, got.Of(limit), want)
		}
	}
	if again, err := Parse(got.String()); err != nil || again != got {
		t.Errorf("written as %q and read as %q: %v", got, again, err)
	}
	if none, err := Parse(""); err != nil || none != (Limits{}) {
		t.Errorf("nothing is %q: %v", none, err)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"lits=1Mi":            `"lits" is none of entries, manifests,`,
		"list":                `"list" has no value: want list=VALUE`,
		"list=":               `list=: want a size such as "64Mi"`,
		"list=lots":           `list=lots: want a size such as "64Mi", at most 1048576Gi`,
		"list=-1":             `list=-1: want a size`,
		"list=0":              "want more than nothing: no limit can be switched off",
		"list=9E":             "at most",
		"list=1Mi list=2Mi":   "list is given twice",
		"=":                   `"" is none of`,
		"entries=x,list=y":    `entries=x: want a number such as "5000", at most 1125899906842624; list=y: want`,
		"list=1Mi list=1 x=1": `list is given twice; "x" is none of`,
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) says %v, want %s", text, err, want)
		}
	}
}

func TestExceeded(t *testing.T) {
	var limits Limits
	if err := limits.Check(List, "the list", 4<<20); err != nil {
		t.Errorf("what is as large as allowed is refused: %v", err)
	}
	for want, err := range map[string]error{
		`x: 4.1 MiB, and the limit "list" (the list of repos in CONFIG) is 4 MiB; if it is meant to be, raise it: LIMITS=list=8Mi`:                           limits.Check(List, "x", 4<<20+1),
		`x: more than 4 MiB, the limit "list" (the list of repos in CONFIG); if it is meant to be, raise it: LIMITS=list=8Mi`:                                limits.Exceeded(List, "x", 0),
		`x: 70000, and the limit "entries" (files and directories looked through for manifests) is 7; if it is meant to be, raise it: LIMITS=entries=131072`: limits.With(Entries, 7).Check(Entries, "x", 70_000),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		var exceeded *Exceeded
		if !errors.As(err, &exceeded) {
			t.Errorf("%T", err)
		}
	}
}

// FuzzParse reads whatever may stand in LIMITS. What is taken can be written and read
// again, and allows something.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "manifests=512Mi,list=64Mi", "entries=1e6 list=0x10", "list=1m", "list=9999999999999999999", "list=.5Gi", "a=b=c,,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if err != nil {
			if got != (Limits{}) {
				t.Error("an error, and limits")
			}
			return
		}
		for l := range Limit(count) {
			if most := got.Of(l); most <= 0 || most > int64(292*365*24*time.Hour) {
				t.Errorf("%s is %d", l, most)
			}
			if met := got.Of(l) + 1; got.Check(l, "x", met) == nil || got.Check(l, "x", met-1) != nil {
				t.Errorf("%s does not bound", l)
			}
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("written as %q and read as %q: %v", got, again, err)
		}
	})
}

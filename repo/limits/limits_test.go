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
	got, err := Parse(" pack=512Mi,file=64M objects=500k\nsilence=90s ")
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[Limit]int64{
		Pack: 512 << 20, File: 64e6, Objects: 500_000, Silence: int64(90 * time.Second), Depth: Depth.bound().most,
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
		"pakc=1Mi":                  `"pakc" is none of refs, pack,`,
		"pack":                      `"pack" has no value: want pack=VALUE`,
		"pack=":                     `pack=: want a size such as "64Mi"`,
		"pack=lots":                 `pack=lots: want a size such as "64Mi", at most 1048576Gi`,
		"pack=-1":                   `pack=-1: want a size`,
		"pack=0":                    "want more than nothing: no limit can be switched off",
		"pack=9E":                   "at most",
		"silence=90":                `silence=90: want a time such as "90s"`,
		"silence=-1s":               "want more than nothing",
		"pack=1Mi pack=2Mi":         "pack is given twice",
		"=":                         `"" is none of`,
		"depth=x,file=y":            `depth=x: want a number such as "5000", at most 1125899906842624; file=y: want`,
		"objects=1Mi objects=1 x=1": `objects is given twice; "x" is none of`,
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) says %v, want %s", text, err, want)
		}
	}
}

func TestExceeded(t *testing.T) {
	var limits Limits
	if err := limits.Check(File, "a.yaml", 16<<20); err != nil {
		t.Errorf("what is as large as allowed is refused: %v", err)
	}
	for want, err := range map[string]error{
		`a.yaml: 16.1 MiB, and the limit "file" (one manifest, or another file that is read as a whole) is 16 MiB; if it is meant to be, raise it: LIMITS=file=32Mi`:        limits.Check(File, "a.yaml", 16<<20+1),
		`the pack: more than 96 MiB, the limit "pack" (what a git server sends for one request, compressed); if it is meant to be, raise it: LIMITS=pack=128Mi`:             limits.Exceeded(Pack, "the pack", 0),
		`x: 70000, and the limit "documents" (documents, and items of Lists, in all manifests of a revision) is 7; if it is meant to be, raise it: LIMITS=documents=131072`: limits.With(Documents, 7).Check(Documents, "x", 70_000),
		`the server: more than 1m, the limit "silence" (a git server that sends nothing); if it is meant to be, raise it: LIMITS=silence=2m`:                                limits.Exceeded(Silence, "the server", 0),
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
	for _, seed := range []string{"", "pack=512Mi,file=64Mi", "silence=90s", "objects=1e6 depth=0x10", "pack=1m", "pack=9999999999999999999", "pack=.5Gi", "a=b=c,,"} {
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

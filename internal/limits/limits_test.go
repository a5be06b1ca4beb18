package limits

import (
	"errors"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for l := range Limit(count) {
		b := l.bound()
		if b.name == "" || strings.ContainsAny(b.name, "=, ") || b.what == "" || b.most <= 0 || b.most > largest || (b.why != "") != l.variable() {
			t.Errorf("limit %d is not complete: %+v", l, b)
		}
		if seen[b.name] {
			t.Errorf("%s is there twice", b.name)
		}
		seen[b.name] = true
		got, err := Parse(b.name + "=" + b.unit.plain(b.most))
		if (err == nil) != l.variable() || got.Of(l) != b.most {
			t.Errorf("the default of %s, %s, is read as %d: %v", b.name, b.unit.plain(b.most), got.Of(l), err)
		}
	}
	if n := len(Bounds()); n != variables || n > 9 {
		t.Errorf("%d limits are documented, of %d that LIMITS sets", n, variables)
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(" pack=512Mi,file=64M objects=500k\nentries=1M ")
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[Limit]int64{
		Pack: 512 << 20, File: 64e6, Objects: 500_000, Entries: 1_000_000, Depth: Depth.bound().most,
	} {
		if got.Of(limit) != want {
			t.Errorf("%s is %d, want %d", limit, got.Of(limit), want)
		}
	}
	if none, err := Parse(""); err != nil || none != (Limits{}) {
		t.Errorf("nothing is %v: %v", none, err)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"pakc=1Mi":                  `"pakc" is none of pack, objects,`,
		"depth=300":                 `"depth" is none of`, // it is fixed
		"pack":                      `"pack" has no value: want pack=VALUE`,
		"pack=":                     `pack=: want a size such as "64Mi"`,
		"pack=lots":                 `pack=lots: want a size such as "64Mi", at most 1048576Gi`,
		"pack=-1":                   `pack=-1: want a size`,
		"pack=0":                    "want more than nothing: no limit can be switched off",
		"pack=9E":                   "at most",
		"pack=1Mi pack=2Mi":         "pack is given twice",
		"=":                         `"" is none of`,
		"objects=x,file=y":          `objects=x: want a number such as "5000", at most 1125899906842624; file=y: want`,
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
		`a.yaml: 16.1 MiB, the limit "file" (one manifest, or another file that is read as a whole) is 16 MiB; raise it with LIMITS=file=32Mi`:          limits.Check(File, "a.yaml", 16<<20+1),
		`the pack: more than 96 MiB, the limit "pack" (what a git server sends for one request, compressed) is 96 MiB; raise it with LIMITS=pack=128Mi`: limits.Exceeded(Pack, "the pack", 0),
		`x: 70000, the limit "objects" (git objects sent for one request) is 7; raise it with LIMITS=objects=131072`:                                    limits.With(Objects, 7).Check(Objects, "x", 70_000),
		`x: 17 bytes, the limit "ignore" (.kubesyncignore) is 7 bytes; that is fixed`:                                                                   limits.With(Ignore, 7).Check(Ignore, "x", 17),
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

// FuzzParse reads whatever may stand in LIMITS. What is taken allows something, and
// changes no fixed limit.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "pack=512Mi,file=64Mi", "depth=9", "objects=1e6 file=0x10", "pack=1m", "pack=9999999999999999999", "pack=.5Gi", "a=b=c,,"} {
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
			if most := got.Of(l); most <= 0 || most > largest || !l.variable() && most != l.bound().most {
				t.Errorf("%s is %d", l, most)
			}
			if met := got.Of(l) + 1; got.Check(l, "x", met) == nil || got.Check(l, "x", met-1) != nil {
				t.Errorf("%s does not bound", l)
			}
		}
	})
}

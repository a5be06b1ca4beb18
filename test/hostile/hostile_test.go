package hostile

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

// Everything that an application repo tries ends as the table says, and nothing of it
// reaches what is not the repo's.
func TestApplicationRepo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if e := l.push(t, baselineAnd("calm.yaml", inShop("calm"))); e.Message != "synced" {
		t.Fatalf("the hostile repo is not even synced while it behaves: %+v", e)
	}
	counts := map[outcome]int{}
	all := attempts()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			l.attempt(t, all[name])
			if !t.Failed() {
				counts[all[name].is]++
			}
		})
	}
	contained := 0
	for _, is := range []outcome{refused, denied, pending, harmless} {
		t.Logf("%4d %s", counts[is], is)
		contained += counts[is]
	}
	t.Logf("attempted %d, contained %d, not to be contained by kubesync and documented %d", len(all), contained, counts[open])
}

// baselineAnd returns the baseline with one more file.
func baselineAnd(name, manifest string) map[string]string {
	files := baseline()
	files[name] = manifest
	return files
}

// attempt makes one, and then lets the repo behave again.
func (l *lab) attempt(t *testing.T, a attempt) {
	if e := l.push(t, baseline()); e.Message != "synced" {
		t.Fatalf("before it: %+v", e)
	}
	before := l.look(t)
	files := baseline()
	delete(files, "leaving.yaml")
	maps.Copy(files, a.files)
	e := l.push(t, files)
	after := l.look(t)

	for _, difference := range differences(before.outside(), after.outside()) {
		t.Errorf("outside: %s", difference)
	}
	if want := map[outcome]string{refused: "sync failed", denied: "sync partial", pending: "sync partial"}[a.is]; e.Message != want && (want != "" || e.Message != "synced") {
		t.Errorf("the log says %q: %s", e.Message, e.text())
	}
	for _, says := range a.says {
		if !regexp.MustCompile("(?m)" + says).MatchString(e.text()) {
			t.Errorf("the log does not say %s, but\n%s", says, e.text())
		}
	}
	const kept, leaving = "configmaps shop/kept", "configmaps shop/leaving"
	if after[kept] != before[kept] {
		t.Errorf("what is declared has changed: %s, %s", before[kept], after[kept])
	}
	if failed := a.is != harmless && a.is != open; failed && after[leaving] != before[leaving] {
		t.Errorf("what left the repo is not as it was: %s, %q", before[leaving], after[leaving])
	}
}

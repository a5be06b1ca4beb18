package apply

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/internal/revision"
)

func TestAsRecorded(t *testing.T) {
	t.Parallel()
	const url, clone = "https://git.example.com/site.git", "file:///home/joe/checkout"
	recorded := parent.Parent{Live: &corev1.ConfigMap{Data: map[string]string{
		parent.DataURL: url, parent.DataTier: "application", parent.DataSource: "YMLDIR", parent.DataDirectory: "deploy",
	}}}
	same := Provenance{Revision: revision.Revision{ID: "worktree-1"}, URL: clone, Source: "YMLDIR", Dir: "deploy"}
	with := func(change func(*Provenance)) Provenance {
		changed := same
		change(&changed)
		return changed
	}
	tests := map[string]struct {
		parent   parent.Parent
		revision Provenance
		tier     manifest.Tier
		preview  bool
		want     []string
		url      string
	}{
		"never synced":    {revision: same, preview: true, url: clone},
		"as the daemon":   {recorded, same, manifest.Application, true, nil, url},
		"the same URL":    {recorded, with(func(r *Provenance) { r.URL = url }), manifest.Application, false, nil, url},
		"another URL":     {recorded, same, manifest.Application, false, []string{"the last sync was from " + url + ", this dry run is from " + clone + ": a daemon that were given that URL would prune nothing without approval"}, url},
		"another tier":    {recorded, same, manifest.System, true, []string{"the last sync was of the application tier, this dry run is of the system tier: unless that is what changes, set TIER to application"}, url},
		"another source":  {recorded, with(func(r *Provenance) { r.Source, r.Dir = "root", "." }), manifest.Application, true, []string{"the last sync took the manifests from YMLDIR (deploy), this dry run from root (.): unless that is what changes, set CMD and YMLDIR as the daemon has them"}, url},
		"a parent of old": {parent.Parent{Live: &corev1.ConfigMap{Data: map[string]string{parent.DataURL: url, parent.DataSource: "YMLDIR", parent.DataDirectory: "deploy"}}}, same, manifest.System, true, nil, url},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, revision := asRecorded(test.parent, test.revision, test.tier, test.preview)
			if !slices.Equal(got, test.want) || revision.URL != test.url || revision.Source != test.revision.Source || revision.Dir != test.revision.Dir {
				t.Errorf("got %q and %+v, want %q and the URL %s", got, revision, test.want, test.url)
			}
		})
	}
}

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
)

// A preview is a dry run of files that the daemon which writes the set does not have yet:
// it has to be what that daemon would do, not what this process would in its place.

// asRecorded compares a dry run with what the set's parent remembers. It returns what
// differs of the settings, since that may be how a user called the dry run and not what
// they want to see; and the revision as the prune is to be judged. Its URL is the one that
// is recorded: where a clone lies is no change of the repo, and what another URL of it
// would have pruned is what a dry run is asked for.
func asRecorded(p parent.Parent, revision Provenance, tier manifest.Tier, preview bool) ([]string, Provenance) {
	if p.Data(parent.DataURL) == "" {
		return nil, revision // nothing was ever synced
	}
	var warnings []string
	differs := func(what, before, now, advice string) {
		warnings = append(warnings, fmt.Sprintf("the last sync %s %s, this dry run %s: %s", what, before, now, advice))
	}
	if before := p.Data(parent.DataURL); before != revision.URL && !preview {
		differs("was from", before, "is from "+revision.URL, "a daemon that were given that URL would prune nothing without approval")
	}
	if before := p.Data(parent.DataTier); before != "" && before != tier.String() {
		differs("was of the", before+" tier", fmt.Sprintf("is of the %s tier", tier), "unless that is what changes, set TIER to "+before)
	}
	before, now := origin(p.Data(parent.DataSource), p.Data(parent.DataDirectory)), origin(revision.Source, revision.Dir)
	if before != now {
		differs("took the manifests from", before, "from "+now, "unless that is what changes, set CMD and YMLDIR as the daemon has them")
	}
	revision.URL = p.Data(parent.DataURL)
	return warnings, revision
}

// origin words where manifests come from.
func origin(source, dir string) string { return fmt.Sprintf("%s (%s)", source, dir) }

// parentElsewhere returns the other namespace that has a parent of the set's name, "" if
// there is none that we may see: a kubesync that runs there keeps the set, and a dry run
// that looks for it here finds nothing.
func (s *Set) parentElsewhere(ctx context.Context) (string, error) {
	parents, err := s.cluster.typed.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: manifest.ParentIDLabel,
		FieldSelector: "metadata.name=" + s.parentName,
	})
	switch {
	case apierrors.IsForbidden(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look for the parent %s in all namespaces: %w", s.parentName, err)
	}
	for _, live := range parents.Items {
		if live.Labels[manifest.ParentIDLabel] == parent.ID(live.Namespace, live.Name) && parent.IsOurs(&live) {
			return live.Namespace, nil
		}
	}
	return "", nil
}

// previewNotes returns what a user who reads a dry run has to know of how it was called.
func (s *Set) previewNotes(ctx context.Context, plan *Plan) ([]string, error) {
	var notes []string
	notes, plan.Revision = asRecorded(plan.parent, plan.Revision, s.options.Tier, s.options.Preview)
	if plan.parent.Live != nil {
		return notes, nil
	}
	elsewhere, err := s.parentElsewhere(ctx)
	if err != nil || elsewhere == "" {
		return notes, err
	}
	return append(notes, fmt.Sprintf("namespace %s knows no repo %s, but namespace %s does: to see what the kubesync of that namespace would do, set POD_NAMESPACE=%s",
		s.cluster.options.OwnNamespace, s.options.Name, elsewhere, elsewhere)), nil
}

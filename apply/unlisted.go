package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/internal/revision"
)

// KeepUnlisted looks after the sets whose repos the configuration names no more.
// Their objects stay; a person who wants them gone says so with the annotation
// kubesync.io/delete: <name> on the set's parent. Then they are deleted, with the
// proofs that any deletion needs, and when none is left the parent goes too. The
// error is about sets that could not be deleted in full yet.
func (c *Cluster) KeepUnlisted(ctx context.Context) error {
	w := c.watched()
	if w == nil {
		return nil
	}
	if err := w.parents.Await(ctx, inventory.Patience, apierrors.IsForbidden); err != nil {
		return fmt.Errorf("look for unlisted sets: %w", err)
	}
	var problems []error
	for repo, live := range c.unlistedSets(w) {
		if live.Annotations[parent.DeleteAnnotation] != repo {
			c.logUnlisted(repo)
			continue
		}
		if err := c.deleteUnlisted(ctx, repo); err != nil {
			problems = append(problems, fmt.Errorf("delete the unlisted set of repo %s: %w", repo, err))
		}
	}
	return errors.Join(problems...)
}

// unlistedSets returns the parents of the sets that this daemon has written and whose
// repos the configuration names no more, by repo.
func (c *Cluster) unlistedSets(w *watched) map[string]*corev1.ConfigMap {
	unlisted := map[string]*corev1.ConfigMap{}
	w.parents.Each(func(name string, live *corev1.ConfigMap) {
		if repo, isParent := parent.Repo(name); isParent && c.isUnlisted(repo, live) {
			unlisted[repo] = live
		}
	})
	return unlisted
}

// isUnlisted reports by a repo's parent whether its set was written by this daemon, whose
// configuration names the repo no more.
func (c *Cluster) isUnlisted(repo string, live *corev1.ConfigMap) bool {
	listed, known := c.isListed(repo)
	return known && !listed && parent.IsOurs(live) && live.Data[parent.DataWriter] == c.options.Writer
}

// mayDelete reports by a repo's parent whether its set is to be deleted: it is unlisted,
// the loop that wrote it has ended, and a person asks for it.
func (c *Cluster) mayDelete(repo string, live *corev1.ConfigMap) bool {
	return live != nil && c.isUnlisted(repo, live) && c.setByName(repo) == nil && live.Annotations[parent.DeleteAnnotation] == repo
}

// deletionRevoked returns why an unlisted set is not to be deleted any more, "" if it still
// is. Its deletion takes minutes, in which a user may change CONFIG or the annotation.
func (s *Set) deletionRevoked(ctx context.Context) string {
	live, err := s.cluster.parentOf(ctx, s.parentName)
	switch {
	case err != nil:
		return fmt.Sprintf("whether it is still to be deleted could not be found out: %v", err)
	case !s.cluster.mayDelete(s.options.Name, live):
		return fmt.Sprintf("repo %s is listed again, or no one asks for its deletion", s.options.Name)
	}
	return s.suspended(parent.Parent{Live: live})
}

// Unlisted is a set whose repo the configuration names no more. Its objects stay.
type Unlisted struct {
	Repo     string
	URL      string // where it came from; empty if it is not known
	Revision string // that was synced last
	Delete   string // the command by which a person has its objects deleted
	Deleting bool   // that was asked for
}

// Unlisted returns the unlisted sets by name, as far as they are seen.
func (c *Cluster) Unlisted() []Unlisted {
	w := c.watched()
	if w == nil {
		return nil
	}
	var sets []Unlisted
	for repo, live := range c.unlistedSets(w) {
		sets = append(sets, Unlisted{
			Repo:     repo,
			URL:      live.Data[parent.DataURL],
			Revision: live.Data[parent.DataRevision],
			Delete:   c.deletionCommand(repo),
			Deleting: live.Annotations[parent.DeleteAnnotation] == repo,
		})
	}
	slices.SortFunc(sets, func(a, b Unlisted) int { return strings.Compare(a.Repo, b.Repo) })
	return sets
}

// deletionCommand has the objects of an unlisted set deleted.
func (c *Cluster) deletionCommand(repo string) string {
	return fmt.Sprintf("kubectl annotate configmap --namespace %s %s %s=%s", c.options.OwnNamespace, parent.Name(repo), parent.DeleteAnnotation, repo)
}

// logUnlisted reports an unlisted set, once.
func (c *Cluster) logUnlisted(repo string) {
	c.mu.Lock()
	said := c.unlisted[repo]
	c.unlisted[repo] = true
	c.mu.Unlock()
	if !said {
		c.options.Log.Warn().Str("repo", repo).Msgf("unlisted: the configuration does not name the repo, its objects stay; to delete them: %s", c.deletionCommand(repo))
	}
}

// deleteUnlisted deletes what is left of a set that declares nothing any more.
func (c *Cluster) deleteUnlisted(ctx context.Context, repo string) error {
	recorded, err := c.getParent(ctx, parent.Name(repo))
	if err != nil || !c.mayDelete(repo, recorded) {
		return err
	}
	tier := manifest.Application // what is not known to be a system repo's is deleted with fewer rights
	if recorded.Data[parent.DataTier] == manifest.System.String() {
		tier = manifest.System
	}
	// No one else knows this set: the repo may be listed again at any moment, and then the
	// set that its loop makes known is the repo's.
	s := c.newSet(SetOptions{Name: repo, Tier: tier, Prune: true, Log: c.options.Log})
	s.unlisted = true
	defer s.Close()
	p, err := s.usable(recorded)
	if err != nil {
		return err
	}
	plan := Plan{set: s, parent: p, Revision: Provenance{Revision: revision.Revision{ID: p.Data(parent.DataRevision)}, Polled: time.Now()}}
	if reason := s.suspended(p); reason != "" {
		return errors.New(reason)
	}
	s.ledger.ReadRecord(p.Live != nil, p.Binary(parent.BinaryMembers))
	plan.consent = plan.consented(ctx)
	if plan.kinds, err = c.currentKinds(ctx); err != nil {
		return err
	}
	if plan.live, err = c.namespaces(ctx); err != nil {
		return err
	}
	if err := plan.survey(ctx); err != nil {
		return err
	}
	if len(plan.unseen) > 0 {
		if _, err := plan.dismissGone(ctx); err != nil {
			return err
		}
	}
	result := Result{}
	pruning := plan.pruning(&result)
	if waits, err := pruning.settleOthers(ctx); err != nil || waits != "" {
		return errors.Join(err, errorOf(waits))
	}
	for gk, err := range plan.blind {
		return fmt.Errorf("what it has of kind %s cannot be looked for: %w", gk, err)
	}
	leaving := pruning.sortOut()
	result.Outcomes = leaving.kept
	if plan.consent.covers(plan.Revision.ID, asObjects(leaving.candidates)) {
		plan.consent.consider(leaving.candidates)
	}
	if err := pruning.deleteInSteps(ctx, leaving.candidates); err != nil {
		return err
	}
	return s.deleteParent(ctx, plan, result)
}

// errorOf makes an error of a reason; nil of none.
func errorOf(reason string) error {
	if reason == "" {
		return nil
	}
	return errors.New(reason)
}

// deleteParent deletes the parent of a set of which nothing is left.
func (s *Set) deleteParent(ctx context.Context, plan Plan, result Result) error {
	var left []error
	for _, o := range result.Outcomes {
		if o.Action != Pruned {
			left = append(left, o.problem())
		}
	}
	if unseen := plan.unseenNamespaces(); len(unseen) > 0 {
		left = append(left, fmt.Errorf("what it has in %s cannot be seen, for want of rights there", strings.Join(unseen, ", ")))
	}
	if pruned := result.Counts()[Pruned]; pruned > 0 || len(left) == 0 { // what stays is an error of each sync
		s.options.Log.Info().Str("repo", s.options.Name).Int("pruned", pruned).Int("left", len(left)).Msg("deleting an unlisted set")
	}
	if len(left) > 0 {
		return errors.Join(left...)
	}
	if reason := s.deletionRevoked(ctx); reason != "" {
		return errors.New(reason)
	}
	live := plan.parent.Live
	err := s.cluster.typed.CoreV1().ConfigMaps(live.Namespace).Delete(ctx, live.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the parent %s: %w", s.parentRef(), err)
	}
	return nil
}

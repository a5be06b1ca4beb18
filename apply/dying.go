package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// What git declares may be being deleted by another writer, and a finalizer may keep it for
// ever. It can be created again only when it is gone, so it is pending, and nothing else is
// held up:
//
//   - A Namespace, and what is to live in it, without any wait: deleting one takes seconds
//     at best, and until then nothing can be created there.
//   - Any other object after goneSoon, of which there is one for a whole sync, however many
//     objects are being deleted: most are gone within that, and are created again at once.
//
// Whoever sees it gone has the set synced. A process that watches nothing receives
// nothing: the next plan of the set waits, when all else has been synced.

// goneSoon is how long one sync waits in all for objects that another writer is deleting. A
// Deployment in the foreground takes a second or two.
const goneSoon = 3 * time.Second

// soon returns until when one sync waits, from the first time that it is asked.
func soon() func() time.Time {
	return sync.OnceValue(func() time.Time { return time.Now().Add(goneSoon) })
}

// stillThereError is an object that is being deleted and was not gone in time.
type stillThereError struct {
	uid        types.UID
	finalizers []string
}

// Error implements error.
func (e *stillThereError) Error() string {
	return "the object is being deleted" + pendingReason(e.finalizers)
}

// dyingHomes returns the Namespaces that are being deleted and that objects are declared in
// or as.
func dyingHomes(objects []manifest.Object, live liveNamespaces) map[string]bool {
	homes := map[string]bool{}
	if len(live.terminating) == 0 {
		return homes
	}
	for _, o := range objects {
		if home := o.ID().Home(); live.terminating[home] {
			homes[home] = true
		}
	}
	return homes
}

// whatKeeps says of Namespaces that are being deleted what keeps each, as the API server
// says it. What cannot be found out is left out: that it is being deleted is known.
func (c *Cluster) whatKeeps(ctx context.Context, namespaces map[string]bool) map[string]string {
	keeps := map[string]string{}
	for name := range namespaces {
		if live, err := c.namespace(ctx, name); err == nil && live != nil {
			keeps[name] = whatRemains(live)
		}
	}
	return keeps
}

// namespace reads a Namespace, nil if there is none. It lists, since that is a right which
// the daemon has in any case.
func (c *Cluster) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	found, err := c.typed.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("look at Namespace %s: %w", name, err)
	}
	for i := range found.Items {
		if found.Items[i].Name == name {
			return &found.Items[i], nil
		}
	}
	return nil, nil
}

// whatRemains says what keeps a Namespace that is being deleted, in the words of its
// conditions, of which all that are true are bad news; "" if nothing is known yet.
func whatRemains(live *corev1.Namespace) string {
	var texts []string
	for _, condition := range live.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && strings.HasPrefix(string(condition.Type), "Namespace") {
			texts = append(texts, strings.TrimSuffix(condition.Message, "."))
		}
	}
	if len(live.Finalizers) > 0 {
		texts = append(texts, "it waits for its own finalizers: "+strings.Join(live.Finalizers, ", "))
	}
	return strings.Join(texts, "; ")
}

// waitsForHome says why an object waits for its Namespace, "" if it need not: the Namespace
// is there or, if it is declared, can be created.
func waitsForHome(id manifest.ID, declared bool, live liveNamespaces, keeps map[string]string) string {
	home := id.Home()
	if home == "" || live.exists(home) || declared && !live.terminating[home] {
		return ""
	}
	if !live.terminating[home] {
		return fmt.Sprintf("waits for Namespace %s, which does not exist", home)
	}
	reason := fmt.Sprintf("waits for Namespace %s, which is being deleted", home)
	if id.GroupKind() == manifest.NamespaceKind {
		reason = "waits to be created again: the Namespace is being deleted"
	}
	if keeps[home] != "" {
		reason += ": " + keeps[home]
	}
	return reason
}

// pendDying holds back an object that is being deleted, and was not gone in time.
func (s *Set) pendDying(outcome Outcome, m observed.Member, still *stillThereError) Outcome {
	s.ledger.Dying(m)
	if w := s.cluster.watched(); w != nil {
		// Whoever saw it gone before it was noted has woken no one.
		if live, there, known := w.members.Find(m.ID); known && s.ledger.Died(m.ID, live, there) {
			s.wake()
		}
	}
	return s.pend(outcome, "waits to be created again: "+still.Error())
}

// awaitDying waits until what the last sync found being deleted is gone, for as long as a
// person would; the plan reports what is still there.
func (s *Set) awaitDying(ctx context.Context) error {
	deadline := time.Now().Add(goneWait)
	for _, m := range s.ledger.TakeDying() {
		var still *stillThereError
		if err := s.awaitAnyGone(ctx, m, deadline); err != nil && !errors.As(err, &still) {
			return err
		}
	}
	return nil
}

// awaitAnyGone is awaitGone for a Namespace, too, which a set may have no right to read.
func (s *Set) awaitAnyGone(ctx context.Context, m observed.Member, deadline time.Time) error {
	if m.ID.GroupKind() != manifest.NamespaceKind {
		return s.awaitGone(ctx, m, deadline)
	}
	for {
		live, err := s.cluster.namespace(ctx, m.ID.Name)
		switch {
		case err != nil:
			return err
		case live == nil, live.DeletionTimestamp == nil:
			return nil
		case time.Now().After(deadline):
			return &stillThereError{live.UID, live.Finalizers}
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// wakeIn has the sets synced that declare a Namespace, or objects in it.
func (c *Cluster) wakeIn(namespace string) {
	for _, s := range c.allSets() {
		if s.ledger.LivesIn(namespace) {
			s.wake()
		}
	}
}

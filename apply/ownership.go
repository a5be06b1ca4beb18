package apply

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
)

// ownership returns why an object is not this set's to write, nil if it is. An
// object without an apply set's label belongs to no one yet and is adopted.
func (p *Plan) ownership(ctx context.Context, id manifest.ID) error {
	if other, found := p.taken[id]; found {
		return fmt.Errorf("repo %s declares %s as well as repo %s: take it out of one of them", other, id, p.set.options.Name)
	}
	live, known := p.look(id)
	if !known || live.Set == p.set.id {
		return nil
	}
	owner, err := p.set.cluster.ownerOf(ctx, live.Set, p.owners)
	switch {
	case err != nil:
		return fmt.Errorf("%s belongs to another apply set, and which one could not be found out: %w", id, err)
	case owner.released && owner.suspended != "":
		p.set.waitFor(owner.repo)
		return fmt.Errorf("%s belongs to repo %s, which is suspended (%s): repo %s takes it over when it is resumed", id, owner.repo, owner.suspended, p.set.options.Name)
	case owner.released:
		return nil
	case owner.repo != "" && !p.set.options.Preview:
		p.set.waitFor(owner.repo)
		return fmt.Errorf("%s belongs to repo %s, which has not said yet whether it still declares it; repo %s waits", id, owner.repo, p.set.options.Name)
	}
	return fmt.Errorf("%s belongs to the apply set %s, not to %s: take it out of one of them, or remove its label %s",
		id, owner.parent, p.set.parentRef(), manifest.PartOfLabel)
}

// owner is what is known of the apply set that a live object belongs to.
type owner struct {
	repo   string // of this daemon; empty if it is another's
	parent string // namespace/name (of a ConfigMap unless it says otherwise), or the set's ID where no parent can be found
	// released says that the set is this daemon's and has let the object go: it
	// declares it no more (else the object were claimed), or it was unlisted.
	released bool
	// suspended says what has stopped every write to the set; empty if nothing has. Whoever
	// declares its objects in another repo, or lists its repo under another name, has not
	// taken that back.
	suspended string
}

// owners are the owners that were looked up during one sync: a thousand objects of
// another tool's set are one question.
type owners struct {
	mu    sync.Mutex // held during a look-up, which others want the answer of too
	known map[string]owner
}

// find returns an owner, looked up at most once unless that fails.
func (s *owners) find(id string, look func() (owner, error)) (owner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, known := s.known[id]; known {
		return found, nil
	}
	found, err := look()
	if err != nil {
		return owner{}, err
	}
	if s.known == nil {
		s.known = map[string]owner{}
	}
	s.known[id] = found
	return found, nil
}

// ownerOf finds the set with an ID.
func (c *Cluster) ownerOf(ctx context.Context, id string, others *owners) (owner, error) {
	if set, here := c.setByID(id); here {
		return owner{repo: set.options.Name, parent: set.parentRef(), released: set.hasClaimed(), suspended: set.suspendedNow()}, nil
	}
	return others.find(id, func() (owner, error) { return c.lookUpOwner(ctx, id) })
}

// suspendedNow returns what has stopped every write to the set, as it was last seen.
func (s *Set) suspendedNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.options.Suspend:
		return "by the configuration"
	case s.steering[manifest.SuspendAnnotation] == "true":
		return fmt.Sprintf("the annotation %s on ConfigMap %s", manifest.SuspendAnnotation, s.parentRef())
	}
	return ""
}

// lookUpOwner finds a set that this process does not run.
func (c *Cluster) lookUpOwner(ctx context.Context, id string) (owner, error) {
	found, err := c.findParent(ctx, id)
	if err != nil {
		return owner{}, err
	}
	if found == nil {
		parent, err := c.findSecretParent(ctx, id)
		return owner{parent: parent}, err
	}
	theirs := owner{parent: found.Namespace + "/" + found.Name}
	ours := found.Namespace == c.options.OwnNamespace && parent.IsOurs(found) &&
		found.Data[parent.DataWriter] == c.options.Writer
	if name, isParent := parent.Repo(found.Name); ours && isParent {
		listed, known := c.isListed(name)
		theirs.repo, theirs.released = name, known && !listed
		if (parent.Parent{Live: found}).Suspended() {
			theirs.suspended = fmt.Sprintf("the annotation %s on ConfigMap %s", manifest.SuspendAnnotation, theirs.parent)
		}
	}
	return theirs, nil
}

// findParent finds an apply set's parent: in our own namespace, or elsewhere as
// far as we may look. It returns nil if there is none to be found.
func (c *Cluster) findParent(ctx context.Context, id string) (*corev1.ConfigMap, error) {
	for _, ns := range []string{c.options.OwnNamespace, metav1.NamespaceAll} {
		parents, err := c.typed.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{LabelSelector: manifest.ParentIDLabel + "=" + id, Limit: 1})
		switch {
		case apierrors.IsForbidden(err) && ns == metav1.NamespaceAll:
		case err != nil:
			return nil, fmt.Errorf("look for the parent of %s: %w", id, err)
		case len(parents.Items) > 0:
			return &parents.Items[0], nil
		}
	}
	return nil, nil
}

// findSecretParent names an apply set's parent that is a Secret, as kubectl's are
// by default; the set's ID if there is none that we may see. It looks
// at metadata only.
func (c *Cluster) findSecretParent(ctx context.Context, id string) (string, error) {
	name := id
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	err := c.own.ListMetadata(ctx, secrets, metav1.NamespaceAll, manifest.ParentIDLabel+"="+id, func(secret *metav1.PartialObjectMetadata) {
		name = fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name)
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return "", fmt.Errorf("look for the parent of %s: %w", id, err)
	}
	return name, nil
}

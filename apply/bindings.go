package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

// bindingWriterLabel marks a RoleBinding as ours to take away, and names the
// daemon that may: several can serve one cluster.
const bindingWriterLabel = "kubesync.io/writer"

// bindingWait bounds how long to wait until the authorizer has seen a new binding.
const bindingWait = 5 * time.Second

// KeepBindings gives LimitedUser the ClusterRole admin in every namespace that is
// no system namespace and in which some application repo may write, and takes
// away those bindings of ours that are no longer wanted. Without application
// repos none is wanted. It deletes nothing that does not carry this daemon's label,
// and takes nothing away before Listed has said which repos there are, in each term as
// the one writer anew. What is wrong in one namespace keeps it from no other.
func (c *Cluster) KeepBindings(ctx context.Context) error {
	live, err := c.namespaces(ctx)
	if err != nil {
		return fmt.Errorf("keep RoleBindings %s: %w", manifest.BindingName, err)
	}
	present, err := c.presentBindings(ctx)
	repos, known := c.applications() // as they are now, however long it took to look
	if apierrors.IsForbidden(err) && len(repos) == 0 {
		return nil // a daemon that may not even look has never made one
	}
	if err != nil {
		return fmt.Errorf("keep RoleBindings %s: %w", manifest.BindingName, err)
	}
	wanted := c.namespacesFor(repos, live)
	var problems []error
	for _, binding := range present {
		ns := binding.Namespace
		switch {
		case wanted[ns] && grantsAdmin(binding):
			delete(wanted, ns)
		case wanted[ns] && !refersToAdmin(binding): // for ever: a roleRef is immutable
			delete(wanted, ns)
			problems = append(problems, fmt.Errorf("RoleBinding %s/%s is not kubesync's, it grants %s %s: application repos have no rights in namespace %s until it is gone",
				ns, manifest.BindingName, binding.RoleRef.Kind, binding.RoleRef.Name, ns))
		case known && !wanted[ns] && binding.Labels[bindingWriterLabel] == c.bindingWriter() && listAllows(c.options.Namespaces, ns):
			problems = append(problems, c.removeBinding(ctx, binding))
		}
	}
	return errors.Join(append(problems, c.addBindings(ctx, wanted))...)
}

// bindingWriter names this daemon in bindingWriterLabel: by its Lease and the namespace of
// that, since daemons that are not told otherwise have Leases of the same name.
func (c *Cluster) bindingWriter() string {
	name := c.options.OwnNamespace + "." + c.options.Writer
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return manifest.DigestOf([]byte(name)).String()
}

// presentBindings returns the RoleBindings that there are.
func (c *Cluster) presentBindings(ctx context.Context) ([]rbacv1.RoleBinding, error) {
	var present []rbacv1.RoleBinding
	if w := c.watched(); w != nil {
		if err := w.bindings.Await(ctx, inventory.Patience, apierrors.IsForbidden); err != nil {
			return nil, err
		}
		w.bindings.Each(func(_ string, binding *rbacv1.RoleBinding) { present = append(present, *binding) })
		return present, nil
	}
	list, err := c.typed.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + manifest.BindingName})
	if err != nil {
		return nil, fmt.Errorf("list RoleBindings: %w", err)
	}
	return list.Items, nil
}

// namespacesFor returns where some of the application repos may write.
func (c *Cluster) namespacesFor(repos []ListedRepo, live liveNamespaces) map[string]bool {
	wanted := map[string]bool{}
	for _, r := range repos {
		for ns := range live.labels {
			allowed := listAllows(c.options.Namespaces, ns) && listAllows(r.Namespaces, ns)
			if allowed && live.exists(ns) && !c.isSystem(ns, live) {
				wanted[ns] = true
			}
		}
	}
	return wanted
}

// grantsAdmin reports whether a RoleBinding gives LimitedUser what it needs.
func grantsAdmin(binding rbacv1.RoleBinding) bool {
	isLimitedUser := func(s rbacv1.Subject) bool { return s.Kind == rbacv1.UserKind && s.Name == LimitedUser }
	return refersToAdmin(binding) && slices.ContainsFunc(binding.Subjects, isLimitedUser)
}

// refersToAdmin reports whether a RoleBinding is for the role that LimitedUser needs.
func refersToAdmin(binding rbacv1.RoleBinding) bool {
	return binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == "admin"
}

// addBindings creates the bindings and waits until the authorizer knows them.
func (c *Cluster) addBindings(ctx context.Context, namespaces map[string]bool) error {
	var problems []error
	var last string
	for _, ns := range slices.Sorted(maps.Keys(namespaces)) {
		binding := rbacapply.RoleBinding(manifest.BindingName, ns).
			WithLabels(map[string]string{bindingWriterLabel: c.bindingWriter(), "app.kubernetes.io/managed-by": kube.FieldManager}).
			WithRoleRef(rbacapply.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName("admin")).
			WithSubjects(rbacapply.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.UserKind).WithName(LimitedUser))
		added, err := c.typed.RbacV1().RoleBindings(ns).Apply(ctx, binding, metav1.ApplyOptions{FieldManager: kube.FieldManager, Force: true})
		switch {
		case apierrors.IsNotFound(err): // the namespace went away meanwhile
		case err != nil:
			problems = append(problems, fmt.Errorf("create RoleBinding %s/%s for application repos: %w", ns, manifest.BindingName, err))
		case kube.CheckName(added, ns, manifest.BindingName) != nil:
			problems = append(problems, kube.CheckName(added, ns, manifest.BindingName))
		default:
			last = ns
			if w := c.watched(); w != nil {
				w.bindings.Put(added)
			}
		}
	}
	if last != "" {
		c.awaitBinding(ctx, last)
	}
	return errors.Join(problems...)
}

// awaitBinding waits until the API server grants what a new binding says: its
// authorizer learns of it by a watch, some milliseconds later. It sees bindings
// in the order of their creation, so the last one stands for all.
func (c *Cluster) awaitBinding(ctx context.Context, namespace string) {
	for deadline := time.Now().Add(bindingWait); time.Now().Before(deadline); {
		// If it cannot be asked, the writes themselves will show it.
		if allowed, err := c.reviewLimited(ctx, namespace); err != nil || allowed || pause(ctx) != nil {
			return
		}
	}
}

// limitedMayWrite reports whether application repos have rights in a namespace.
func (c *Cluster) limitedMayWrite(ctx context.Context, namespace string) bool {
	allowed, err := c.reviewLimited(ctx, namespace)
	return allowed && err == nil
}

// reviewLimited asks whether LimitedUser has what ClusterRole admin gives first of all.
func (c *Cluster) reviewLimited(ctx context.Context, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Resource: "configmaps",
		},
	}}
	answer, err := c.asLimited.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// removeBinding deletes a binding of ours, if it is still the one looked at.
func (c *Cluster) removeBinding(ctx context.Context, binding rbacv1.RoleBinding) error {
	err := c.typed.RbacV1().RoleBindings(binding.Namespace).Delete(ctx, binding.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &binding.UID, ResourceVersion: &binding.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // a conflict is looked at again next time
	}
	return fmt.Errorf("remove RoleBinding %s/%s, which is no longer wanted: %w", binding.Namespace, binding.Name, err)
}

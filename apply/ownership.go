package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownership returns why an object is not this set's to write, nil if it is. An
// object without an apply set's label belongs to nobody yet and is adopted.
func (s *Set) ownership(ctx context.Context, plan *Plan, taken map[ID]string, id ID) error {
	if other, found := taken[id]; found {
		return fmt.Errorf("repo %s declares %s as well as repo %s: take it out of one of them", other, id, s.options.Name)
	}
	live, known := plan.members[id]
	if !known || live.Set == s.id {
		return nil
	}
	if owner, here := s.cluster.setByID(live.Set); here {
		if owner.hasClaimed() {
			return nil // it declares the object no more (else it were taken): handed over
		}
		return fmt.Errorf("%s belongs to repo %s, which has not said yet whether it still declares it; repo %s waits",
			id, owner.options.Name, s.options.Name)
	}
	return fmt.Errorf("%s belongs to the apply set %s, not to %s: take it out of one of them, or remove its label %s",
		id, s.cluster.describeSet(ctx, live.Set), s.parentRef(), partOfLabel)
}

// describeSet names the parent of an apply set that is not of this daemon, or
// gives the set's ID where no parent can be found.
func (c *Cluster) describeSet(ctx context.Context, id string) string {
	parents, err := c.typed.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: parentIDLabel + "=" + id, Limit: 1})
	if err != nil || len(parents.Items) == 0 {
		return id
	}
	return parents.Items[0].Namespace + "/" + parents.Items[0].Name
}

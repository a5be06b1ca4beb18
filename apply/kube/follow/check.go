package follow

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// CheckList returns what shows that an answer is no list of what was asked for, although
// it can be read as one; nil if nothing does. Absence decides that a Namespace is empty
// and may go, and nothing in a list proves it; but a proxy or a broken server seldom
// sends a false answer for which all of this holds: every list names its version, every object has a name, an identity and a
// version and is what the selectors of the options ask for, and a page that says that
// there is more has something on it.
func CheckList(list metav1.ListInterface, objects []metav1.Object, options metav1.ListOptions) error {
	if err := checkVersion(list.GetResourceVersion()); err != nil {
		return err
	}
	if list.GetContinue() != "" && (len(objects) == 0 || list.GetContinue() == options.Continue) {
		return errors.New("the API server sent a page that leads no further")
	}
	for _, o := range objects {
		if err := check(o, options); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion returns an error for an answer without a version.
func checkVersion(version string) error {
	if version == "" {
		return errors.New("the API server sent an answer without a version")
	}
	return nil
}

// check returns what shows that an object is not what was asked for.
func check(o metav1.Object, options metav1.ListOptions) error {
	switch {
	case o.GetName() == "" || o.GetUID() == "" || o.GetResourceVersion() == "":
		return fmt.Errorf("the API server sent something without name, uid or version (%q, %q, %q)", o.GetName(), o.GetUID(), o.GetResourceVersion())
	case !selected(o, options):
		return fmt.Errorf("the API server sent %s/%s, which was not asked for", o.GetNamespace(), o.GetName())
	}
	return nil
}

// selected reports whether an object matches the selectors. Of field selectors it knows
// those that go by name.
func selected(o metav1.Object, options metav1.ListOptions) bool {
	byLabel, err := labels.Parse(options.LabelSelector)
	if err != nil || !byLabel.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	byField, err := fields.ParseSelector(options.FieldSelector)
	return err == nil && byField.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}

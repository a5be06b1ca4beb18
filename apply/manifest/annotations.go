package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/health"
)

// Labels of the ApplySet specification (KEP-3659). kubectl exports the same strings
// from its apply command, whose dependencies a daemon does not need; a test holds
// these against them.
const (
	PartOfLabel   = "applyset.kubernetes.io/part-of" // object: the ID of its set
	ParentIDLabel = "applyset.kubernetes.io/id"      // parent: the ID of the set
)

// Annotations and the label by which a user configures what kubesync does with an object.
const (
	SuspendAnnotation  = "kubesync.io/suspend"  // object or parent: no write while "true"
	PruneAnnotation    = "kubesync.io/prune"    // object: never pruned while "false"
	RecreateAnnotation = "kubesync.io/recreate" // object: may be deleted and created again
	AdoptAnnotation    = "kubesync.io/adopt"    // object: take over this applier's fields
	TierLabel          = "kubesync.io/tier"     // Namespace: "system" closes it to application repos
)

// ignoreAnnotation lists the fields, separated by commas, that are left out of
// what is applied, so that others may own them: spec.replicas for a
// HorizontalPodAutoscaler's target. Fields are separated by dots; a dot inside a
// key is written \. as in metadata.annotations.example\.com/note. Items of lists
// cannot be named.
const ignoreAnnotation = "kubesync.io/ignore"

// annotationPrefix starts the annotations that are kubesync's own.
const annotationPrefix = "kubesync.io/"

// ownAnnotationFaults finds what kubesync would misunderstand: an annotation with a
// slip in it would silently not protect what it was meant to protect.
func ownAnnotationFaults(o draft) []string {
	var faults []string
	annotations := o.GetAnnotations()
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(name, annotationPrefix) {
			faults = append(faults, annotationFaults(name, annotations[name])...)
		}
	}
	if health.Annotated(annotations) && o.ID().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		faults = append(faults, fmt.Sprintf("a Secret can have neither annotation %s nor %s: kubesync reads no values of Secrets; put it on the object that uses the Secret, or on the one that a controller makes it from",
			health.WaitForAnnotation, health.FailOnAnnotation))
	}
	if value, set := o.GetLabels()[TierLabel]; set && o.GetKind() == "Namespace" {
		if _, err := ParseTier(value); err != nil {
			faults = append(faults, fmt.Sprintf("label %s: %v", TierLabel, err))
		}
	}
	if _, set := o.GetLabels()[ParentIDLabel]; set {
		faults = append(faults, fmt.Sprintf("label %s marks the parent of an apply set, which cannot be declared: kubesync keeps its own", ParentIDLabel))
	}
	return faults
}

// annotationFaults looks at one annotation of kubesync's.
func annotationFaults(name, value string) []string {
	switch name {
	case RecreateAnnotation, PruneAnnotation, SuspendAnnotation:
		if value != "true" && value != "false" {
			return []string{fmt.Sprintf(`annotation %s is %q: "true" and "false" are accepted`, name, value)}
		}
	case AdoptAnnotation:
		if strings.TrimSpace(value) == "" {
			return []string{fmt.Sprintf("annotation %s is empty: it wants the name of a field manager", name)}
		}
	case health.WaitForAnnotation, health.FailOnAnnotation:
		if _, err := health.Parse(value); err != nil {
			return []string{fmt.Sprintf("annotation %s: %v", name, err)}
		}
	case ignoreAnnotation:
		_, faults := ignoredFields(value)
		return faults
	default:
		known := []string{AdoptAnnotation, health.FailOnAnnotation, ignoreAnnotation, PruneAnnotation, RecreateAnnotation, SuspendAnnotation, health.WaitForAnnotation}
		return []string{fmt.Sprintf("annotation %s is not one that a manifest can have: %s are", name, strings.Join(known, ", "))}
	}
	return nil
}

// ignoredFields reads the value of the annotation ignoreAnnotation.
func ignoredFields(value string) (paths [][]string, faults []string) {
	for _, text := range strings.Split(value, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		path := splitPath(text)
		if slices.Contains(path, "") || strings.ContainsAny(text, "[]*$") {
			faults = append(faults, fmt.Sprintf("annotation %s: %q is no field: names separated by dots are, such as spec.replicas", ignoreAnnotation, text))
			continue
		}
		if isIdentity(path) {
			faults = append(faults, fmt.Sprintf("annotation %s: %s cannot be left out", ignoreAnnotation, text))
			continue
		}
		paths = append(paths, path)
	}
	return paths, faults
}

// isIdentity reports whether a field is needed to know the object, or what
// kubesync shall do with it.
func isIdentity(path []string) bool {
	switch len(path) {
	case 1:
		return slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0])
	case 2:
		return path[0] == "metadata" && slices.Contains([]string{"name", "namespace", "annotations"}, path[1])
	default:
		return path[0] == "metadata" && path[1] == "annotations" && strings.HasPrefix(path[2], annotationPrefix)
	}
}

// splitPath splits at the dots that have no backslash before them.
func splitPath(text string) []string {
	const escapedDot = "\x00"
	path := strings.Split(strings.ReplaceAll(text, `\.`, escapedDot), ".")
	for i := range path {
		path[i] = strings.ReplaceAll(path[i], escapedDot, ".")
	}
	return path
}

package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ignoreAnnotation lists the fields, separated by commas, that are left out of
// what is applied, so that others may own them: spec.replicas for a
// HorizontalPodAutoscaler's target. Fields are separated by dots; a dot inside a
// key is written \. as in metadata.annotations.example\.com/note. Items of lists
// cannot be named.
const ignoreAnnotation = "kubesync.io/ignore"

// steeringPrefix starts the annotations by which manifests steer kubesync.
const steeringPrefix = "kubesync.io/"

// steeringFaults finds what kubesync would misunderstand: an annotation with a
// slip in it would silently not protect what it was meant to protect.
func steeringFaults(o draft) []string {
	var faults []string
	annotations := o.GetAnnotations()
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(name, steeringPrefix) {
			faults = append(faults, annotationFaults(name, annotations[name])...)
		}
	}
	if value, set := o.GetLabels()[tierLabel]; set && o.GetKind() == "Namespace" {
		if _, err := ParseTier(value); err != nil {
			faults = append(faults, fmt.Sprintf("label %s: %v", tierLabel, err))
		}
	}
	if _, set := o.GetLabels()[parentIDLabel]; set {
		faults = append(faults, fmt.Sprintf("label %s marks the parent of an apply set, which cannot be declared: kubesync keeps its own", parentIDLabel))
	}
	return faults
}

// annotationFaults looks at one annotation of kubesync's.
func annotationFaults(name, value string) []string {
	switch name {
	case recreateAnnotation, pruneAnnotation, suspendAnnotation:
		if value != "true" && value != "false" {
			return []string{fmt.Sprintf(`annotation %s is %q: "true" and "false" are accepted`, name, value)}
		}
	case adoptAnnotation:
		if strings.TrimSpace(value) == "" {
			return []string{fmt.Sprintf("annotation %s is empty: it wants the name of a field manager", name)}
		}
	case ignoreAnnotation:
		_, faults := ignoredFields(value)
		return faults
	default:
		known := []string{adoptAnnotation, ignoreAnnotation, pruneAnnotation, recreateAnnotation, suspendAnnotation}
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

// isIdentity tells whether a field is needed to know the object, or what
// kubesync shall do with it.
func isIdentity(path []string) bool {
	switch len(path) {
	case 1:
		return slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0])
	case 2:
		return path[0] == "metadata" && slices.Contains([]string{"name", "namespace", "annotations"}, path[1])
	default:
		return path[0] == "metadata" && path[1] == "annotations" && strings.HasPrefix(path[2], steeringPrefix)
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

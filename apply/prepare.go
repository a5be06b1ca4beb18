package apply

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lastAppliedAnnotation is where client-side apply keeps what it sent last. It
// may hold the values of a Secret.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// serverMetadata names the fields of metadata that the API server sets. Sent
// back to it they do harm: managedFields are refused, a stale resourceVersion is
// a conflict for ever, a stale uid is invalid.
func serverMetadata() []string {
	return []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields",
		"deletionTimestamp", "deletionGracePeriodSeconds",
	}
}

// prepare makes an object what is sent to the API server.
func prepare(o draft, hasStatus bool) (faults, warnings []string) {
	metadata := mapAt(o.Object, "metadata")
	for _, field := range serverMetadata() {
		delete(metadata, field)
	}
	if hasStatus {
		delete(o.Object, "status")
	}
	if leaveOutKey(metadata, "labels", partOfLabel) {
		warnings = append(warnings, fmt.Sprintf("label %s is left out: kubesync sets it itself", partOfLabel))
	}
	normalizeStrings(metadata, "labels")
	normalizeStrings(metadata, "annotations")
	leaveOutKey(metadata, "annotations", lastAppliedAnnotation)
	if o.ID().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		faults = append(faults, encodeStringData(o.Object)...)
	}
	warnings = append(warnings, lastEnv(o)...)
	faults = append(faults, leaveOut(o)...)
	return faults, warnings
}

// normalizeStrings writes null as the API server reads it: as no map, and as an
// empty string in a map. The accessors of unstructured objects, which kubesync
// uses to add its label, take a map that holds null for no map at all.
func normalizeStrings(metadata map[string]any, field string) {
	values, ok := metadata[field].(map[string]any)
	if !ok {
		delete(metadata, field)
		return
	}
	for key, value := range values {
		if value == nil {
			values[key] = ""
		}
	}
}

// encodeStringData writes a Secret's stringData into data, where it wins as on
// the API server. Sent as stringData, apply would own f:stringData: nobody would
// see foreign edits of data, and removed keys would stay.
func encodeStringData(secret map[string]any) []string {
	faults := append(stringMapFaults("stringData", secret["stringData"]), stringMapFaults("data", secret["data"])...)
	plain, data := mapAt(secret, "stringData"), mapAt(secret, "data")
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if value, ok := data[key].(string); ok {
			if _, err := base64.StdEncoding.DecodeString(value); err != nil {
				faults = append(faults, fmt.Sprintf("data[%q] is not base64 (plain text belongs into stringData)", key))
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	if _, has := secret["stringData"]; !has {
		return nil
	}
	delete(secret, "stringData")
	if len(plain) == 0 {
		return nil
	}
	if data == nil {
		data = map[string]any{}
		secret["data"] = data
	}
	for key, value := range plain {
		text, _ := value.(string) // null reads as empty
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return nil
}

// lastEnv reduces the repeated variables of each container to their last value,
// which is what the kubelet makes of them, and server-side apply refuses.
func lastEnv(o draft) (warnings []string) {
	spec := mapAt(podTemplate(o.Object, o.ID().GroupKind()), "spec")
	for _, list := range containerLists() {
		for i, container := range mapsAt(spec, list) {
			env, ok := container["env"].([]any)
			if !ok {
				continue
			}
			reduced, repeated := lastOfEachName(env)
			container["env"] = reduced
			for _, name := range repeated {
				warnings = append(warnings, fmt.Sprintf("%s[%s]: env %s is set more than once: only its last value is applied",
					list, containerName(container, i), name))
			}
		}
	}
	return warnings
}

// containerName names a container of a list, by its index if it has no name.
func containerName(container map[string]any, index int) string {
	if name, ok := container["name"].(string); ok && name != "" {
		return name
	}
	return fmt.Sprint(index)
}

// lastOfEachName leaves of the variables with equal names the last one, where it
// stands: it may refer to those before it.
func lastOfEachName(env []any) (reduced []any, repeated []string) {
	name := func(entry any) string {
		variable, _ := entry.(map[string]any)
		name, _ := variable["name"].(string)
		return name
	}
	last := map[string]int{}
	for i, entry := range env {
		last[name(entry)] = i
	}
	reduced = make([]any, 0, len(env))
	for i, entry := range env {
		n := name(entry)
		if n == "" || last[n] == i {
			reduced = append(reduced, entry)
		} else if !slices.Contains(repeated, n) {
			repeated = append(repeated, n)
		}
	}
	return reduced, repeated
}

// leaveOut removes the fields that the annotation ignoreAnnotation names. A
// field that is not there is left out already.
func leaveOut(o draft) (faults []string) {
	paths, _ := ignoredFields(o.GetAnnotations()[ignoreAnnotation])
	for _, path := range paths {
		parent := o.Object
		for i, field := range path[:len(path)-1] {
			next, has := parent[field]
			if !has || next == nil {
				parent = nil
				break
			}
			child, ok := next.(map[string]any)
			if !ok {
				faults = append(faults, fmt.Sprintf("annotation %s: %s leads through %s, which is %s and not a mapping",
					ignoreAnnotation, strings.Join(path, "."), strings.Join(path[:i+1], "."), describe(next)))
				parent = nil
				break
			}
			parent = child
		}
		delete(parent, path[len(path)-1])
	}
	return faults
}

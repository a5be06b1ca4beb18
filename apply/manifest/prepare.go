package manifest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/openapi"
)

// LastAppliedAnnotation is where client-side apply keeps what it sent last. It
// may hold the values of a Secret.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

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
	metadata := MapAt(o.Object, "metadata")
	for _, field := range serverMetadata() {
		delete(metadata, field)
	}
	if hasStatus {
		delete(o.Object, "status")
	}
	if leaveOutKey(metadata, "labels", PartOfLabel) {
		warnings = append(warnings, fmt.Sprintf("label %s is left out: kubesync sets it itself", PartOfLabel))
	}
	normalizeStrings(metadata, "labels")
	normalizeStrings(metadata, "annotations")
	leaveOutKey(metadata, "annotations", LastAppliedAnnotation)
	if o.ID().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		faults = append(faults, encodeStringData(o.Object)...)
	}
	warnings = append(warnings, lastOnes(o)...)
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
// the API server. Sent as stringData, apply would own f:stringData: no one would
// see foreign edits of data, and removed keys would stay.
func encodeStringData(secret map[string]any) []string {
	faults := append(stringMapFaults("stringData", secret["stringData"]), stringMapFaults("data", secret["data"])...)
	plain, data := MapAt(secret, "stringData"), MapAt(secret, "data")
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

// lastOnes reduces the repeated variables and ports of each container to the last
// of each. Client-side apply took them and server-side apply refuses them; the
// kubelet goes by the last value of a variable, and a port that stands twice opens
// nothing more.
func lastOnes(o draft) (warnings []string) {
	spec := MapAt(PodTemplate(o.Object, o.ID().GroupKind()), "spec")
	for _, list := range containerLists() {
		for i, container := range MapsAt(spec, list) {
			warn := func(text string) {
				warnings = append(warnings, fmt.Sprintf("%s[%s]: %s", list, containerName(container, i), text))
			}
			for _, name := range keepLast(container, "env", variableName) {
				warn(fmt.Sprintf("env %s is set more than once: only its last value is applied", name))
			}
			names := portNames(container)
			repeated := keepLast(container, "ports", portKey)
			for _, port := range repeated {
				warn(fmt.Sprintf("port %s is declared more than once: only the last is applied", port))
			}
			if lost := without(names, portNames(container)); len(repeated) > 0 && len(lost) > 0 {
				warn(fmt.Sprintf("the names of ports %s are lost with that: Services and probes that use them find no port", strings.Join(lost, ", ")))
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

// keepLast leaves, of the items of a list that have the same key, the last one
// where it stands: a variable may refer to those before it. Items without a key
// stay. It returns the keys that were repeated.
func keepLast(container map[string]any, field string, key func(map[string]any) string) (repeated []string) {
	items, ok := container[field].([]any)
	if !ok {
		return nil
	}
	keys, last := make([]string, len(items)), map[string]int{}
	for i, item := range items {
		if fields, ok := item.(map[string]any); ok {
			keys[i] = key(fields)
		}
		last[keys[i]] = i
	}
	reduced := make([]any, 0, len(items))
	for i, item := range items {
		if k := keys[i]; k == "" || last[k] == i {
			reduced = append(reduced, item)
		} else if !slices.Contains(repeated, k) {
			repeated = append(repeated, k)
		}
	}
	container[field] = reduced
	return repeated
}

// variableName is by what the API server distinguishes a container's variables.
func variableName(variable map[string]any) string {
	name, _ := variable["name"].(string)
	return name
}

// portKey is by what the API server distinguishes a container's ports, and where on
// the node the port is opened: one port that is opened twice there is no repetition,
// and for the API server to refuse.
func portKey(port map[string]any) string {
	number, isNumber := port["containerPort"].(int64)
	if !isNumber {
		return ""
	}
	protocol, _ := port["protocol"].(string)
	key := fmt.Sprintf("%d/%s", number, cmp.Or(protocol, "TCP"))
	for _, field := range []string{"hostPort", "hostIP"} {
		if port[field] != nil {
			key += fmt.Sprintf(" (%s %v)", field, port[field])
		}
	}
	return key
}

// portNames returns the names of a container's ports.
func portNames(container map[string]any) (names []string) {
	for _, port := range MapsAt(container, "ports") {
		if name := variableName(port); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// without returns what the first list has and the second has not.
func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(some, name) })
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
					ignoreAnnotation, strings.Join(path, "."), strings.Join(path[:i+1], "."), openapi.Describe(next)))
				parent = nil
				break
			}
			parent = child
		}
		delete(parent, path[len(path)-1])
	}
	return faults
}

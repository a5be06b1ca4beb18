package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations of the ApplySet specification (KEP-3659) on a parent.
const (
	toolingAnnotation              = "applyset.kubernetes.io/tooling"
	additionalNamespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	groupKindsAnnotation           = "applyset.kubernetes.io/contains-group-kinds"
)

// Annotations on a parent, by which a person approves a deletion.
const (
	approvePruneAnnotation = "kubesync.io/approve-prune" // the revision whose prune is approved
	deleteAnnotation       = "kubesync.io/delete"        // the name of the unlisted repo whose objects shall go
)

// parentName returns the name of the ConfigMap that is the parent of a repo's set.
func parentName(repo string) string { return "kubesync-" + repo }

// applySetID returns the value of the part-of label for the set whose parent is
// the named ConfigMap: "applyset-" base64url(sha256(name.namespace.kind.group)) "-v1".
func applySetID(parentNamespace, parentName string) string {
	unencoded := strings.Join([]string{parentName, parentNamespace, "ConfigMap", ""}, ".")
	sum := sha256.Sum256([]byte(unencoded))
	return fmt.Sprintf("applyset-%s-v1", base64.RawURLEncoding.EncodeToString(sum[:]))
}

// formatGroupKinds writes kinds as the parent's annotation wants them: sorted,
// "Kind.group" separated by commas.
func formatGroupKinds(kinds map[schema.GroupKind]bool) string {
	names := make([]string, 0, len(kinds))
	for kind := range kinds {
		names = append(names, kind.String())
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// parseGroupKinds is the reverse of formatGroupKinds.
func parseGroupKinds(annotation string) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, name := range splitList(annotation) {
		kinds[schema.ParseGroupKind(name)] = true
	}
	return kinds
}

// splitList splits at commas and leaves out what is empty.
func splitList(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(item string) bool { return item == "" })
}

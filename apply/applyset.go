package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FieldManager is the name under which kubesync owns fields (server-side apply).
const FieldManager = "kubesync"

// Labels and annotations of the ApplySet specification (KEP-3659). kubectl
// exports the same strings from its apply command, whose dependencies a daemon
// does not need; a test holds these against them.
const (
	partOfLabel                    = "applyset.kubernetes.io/part-of"
	parentIDLabel                  = "applyset.kubernetes.io/id"
	toolingAnnotation              = "applyset.kubernetes.io/tooling"
	additionalNamespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	groupKindsAnnotation           = "applyset.kubernetes.io/contains-group-kinds"
)

// Annotations by which a person steers kubesync, on an object or on a parent.
const (
	suspendAnnotation      = "kubesync.io/suspend"       // object or parent: no write while "true"
	pruneAnnotation        = "kubesync.io/prune"         // object: never pruned while "false"
	recreateAnnotation     = "kubesync.io/recreate"      // object: may be deleted and created again
	adoptAnnotation        = "kubesync.io/adopt"         // object: take over this applier's fields
	approvePruneAnnotation = "kubesync.io/approve-prune" // parent: the revision whose prune is approved
	deleteAnnotation       = "kubesync.io/delete"        // parent: the name of the abandoned repo whose objects shall go
	tierLabel              = "kubesync.io/tier"          // Namespace: "system" closes it to application repos
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

package parent

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/kubesync/kubesync/apply/manifest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations of the ApplySet specification (KEP-3659) on a parent.
const (
	tooling              = "applyset.kubernetes.io/tooling"
	additionalNamespaces = "applyset.kubernetes.io/additional-namespaces"
	groupKinds           = "applyset.kubernetes.io/contains-group-kinds"
)

// ours marks our parents, so that other tools refuse to touch them.
const ours = "kubesync/v1"

// Annotations on a parent, by which a person approves a deletion.
const (
	ApproveAnnotation = "kubesync.io/approve-prune" // the revision whose prune is approved
	DeleteAnnotation  = "kubesync.io/delete"        // the name of the unlisted repo whose objects shall go
)

// Name returns the name of the ConfigMap that is the parent of a repo's set.
func Name(repo string) string { return "kubesync-" + repo }

// ID returns the value of the part-of label for the set whose parent is
// the named ConfigMap: "applyset-" base64url(sha256(name.namespace.kind.group)) "-v1".
func ID(namespace, name string) string {
	unencoded := strings.Join([]string{name, namespace, "ConfigMap", ""}, ".")
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
	for _, name := range SplitList(annotation) {
		kinds[schema.ParseGroupKind(name)] = true
	}
	return kinds
}

// SplitList splits at commas and leaves out what is empty.
func SplitList(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(item string) bool { return item == "" })
}

// Repo returns the repo that a ConfigMap of a name would be the parent of.
func Repo(name string) (repo string, isParent bool) { return strings.CutPrefix(name, Name("")) }

// IsOurs reports whether a ConfigMap is the parent of a set of some kubesync.
func IsOurs(live *corev1.ConfigMap) bool { return live.Annotations[tooling] == ours }

// Check returns why a ConfigMap is not the parent of the set with an ID, nil if it is.
func Check(live *corev1.ConfigMap, id string) error {
	name := live.Namespace + "/" + live.Name
	switch marked := live.Labels[manifest.ParentIDLabel]; {
	case marked == "":
		return fmt.Errorf("ConfigMap %s exists and is no apply set's parent: delete it, or give the repo another name", name)
	case !IsOurs(live):
		return fmt.Errorf("ConfigMap %s is the parent of an apply set of %q: delete it, or give the repo another name", name, live.Annotations[tooling])
	case marked != id:
		return fmt.Errorf("ConfigMap %s carries the apply set ID %s instead of %s: it was copied or edited; put the label back", name, marked, id)
	}
	return nil
}

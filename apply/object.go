package apply

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/repo/printable"
)

// Object is one manifest of a revision: what git (or a transform) says an
// object of the cluster shall be, and where it says so.
type Object struct {
	*manifest
	Origin Origin
}

// manifest is what a manifest says. It is shared, and never changed. The content is
// kept as JSON: as a tree it would take ten times the memory, and a tree is needed
// only to check it and to send it.
type manifest struct {
	id       ID
	version  string // of the API, without the group
	text     []byte
	content  digest            // of the text
	steering map[string]string // the annotations that are kubesync's own
}

// draft is a manifest as a tree, to be looked at and changed.
type draft struct {
	*unstructured.Unstructured
	Origin Origin
}

// newManifest encodes a tree.
func newManifest(tree *unstructured.Unstructured) (*manifest, error) {
	text, err := json.Marshal(tree.Object)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	m := &manifest{id: identify(tree), version: tree.GroupVersionKind().Version, text: text, content: digestOf(text)}
	for name, value := range tree.GetAnnotations() {
		if strings.HasPrefix(name, steeringPrefix) {
			if m.steering == nil {
				m.steering = map[string]string{}
			}
			m.steering[name] = value
		}
	}
	return m, nil
}

// ID returns the object's identity on the API server.
func (m *manifest) ID() ID { return m.id }

// GroupVersionKind returns the object's kind, in the version it is written in.
func (m *manifest) GroupVersionKind() schema.GroupVersionKind {
	return m.id.GroupKind().WithVersion(m.version)
}

// Tree returns what the manifest says, as a tree that nobody else has.
func (m *manifest) Tree() *unstructured.Unstructured {
	tree := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(m.text, &tree); err != nil {
		panic(fmt.Sprintf("%s: what was encoded cannot be decoded: %v", m.id, err))
	}
	return newUnstructured(tree)
}

// draft returns the object's manifest as a tree.
func (o Object) draft() draft { return draft{o.Tree(), o.Origin} }

// ID returns the object's identity on the API server.
func (d draft) ID() ID { return identify(d.Unstructured) }

// identify returns the identity of an object.
func identify(tree *unstructured.Unstructured) ID {
	return ID{Group: tree.GroupVersionKind().Group, Kind: tree.GetKind(), Namespace: tree.GetNamespace(), Name: tree.GetName()}
}

// namespaceKind has objects that others live in.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// Origin is the place of a manifest: a path as the user knows it and the line
// (from 1) its document starts at.
type Origin struct {
	File string
	Line int
}

// String returns "file:line", or "file" for a whole file, fit for a terminal.
func (o Origin) String() string {
	file := printable.Line(o.File)
	if o.Line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, o.Line)
}

// ID names an object whatever version of its API it is written in. Namespace is
// empty for cluster-scoped objects. It is comparable, hence a map key.
type ID struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// GroupKind returns the kind without a version.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// String returns "Kind/namespace/name", or "Kind/name" for cluster-scoped
// objects.
func (id ID) String() string {
	text := id.Kind + "/" + id.Name
	if id.Namespace != "" {
		text = id.Kind + "/" + id.Namespace + "/" + id.Name
	}
	return printable.Line(text)
}

// Problem is one reason why a set of manifests may not be applied.
type Problem struct {
	Origin Origin // zero if no single file is at fault
	Object string // "Kind/name"; empty where the file could not be read that far
	ID     ID     // of the object; zero where Object is empty
	Text   string
	Field  openapi.Path // that is at fault; nil if that is not known
	// Refused marks what the configuration forbids (the tier, the allowed
	// namespaces), in contrast to mistakes of the manifest.
	Refused bool
	Err     error // the cause, if there is one, for errors.Is
}

// String returns "file:line: kind/name: problem", without the parts that are unknown.
func (p Problem) String() string {
	parts := make([]string, 0, 3)
	if p.Origin.File != "" {
		parts = append(parts, p.Origin.String())
	}
	if p.Object != "" {
		parts = append(parts, printable.Line(p.Object))
	}
	return printable.Text(strings.Join(append(parts, p.Text), ": "))
}

// Problems is an error that reports everything found wrong in one go.
type Problems []Problem

// Error lists the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems' causes.
func (p Problems) Unwrap() []error {
	var causes []error
	for _, problem := range p {
		if problem.Err != nil {
			causes = append(causes, problem.Err)
		}
	}
	return causes
}

// compareIDs orders objects by kind, namespace and name.
func compareIDs(a, b ID) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group),
		strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}

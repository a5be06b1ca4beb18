package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/internal/printable"
)

// Object is one manifest of a revision: what git (or a transform) says an
// object of the cluster shall be, and where it says so.
type Object struct {
	*Content
	Origin Origin
}

// Content is what a manifest says. It is shared, and never changed. It is kept as
// JSON: as a tree it would take ten times the memory, and a tree is needed only to
// check it and to send it.
type Content struct {
	id          ID
	version     string // of the API, without the group
	text        []byte
	digest      Digest            // of the text
	annotations map[string]string // those under kubesync.io/
}

// draft is a manifest as a tree, to be looked at and changed.
type draft struct {
	*unstructured.Unstructured
	Origin Origin
}

// newContent encodes a tree.
func newContent(tree *unstructured.Unstructured) (*Content, error) {
	text, err := json.Marshal(tree.Object)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	c := &Content{id: IDOf(tree), version: tree.GroupVersionKind().Version, text: text, digest: DigestOf(text)}
	for name, value := range tree.GetAnnotations() {
		if strings.HasPrefix(name, annotationPrefix) {
			if c.annotations == nil {
				c.annotations = map[string]string{}
			}
			c.annotations[name] = value
		}
	}
	return c, nil
}

// ID returns the object's identity on the API server.
func (c *Content) ID() ID { return c.id }

// JSON returns the manifest's text. It is shared: read it, never change it.
func (c *Content) JSON() []byte { return c.text }

// Digest returns the hash of the manifest's text.
func (c *Content) Digest() Digest { return c.digest }

// Annotations returns those under kubesync.io/, by which a manifest configures what
// kubesync does with its object. The map is shared: read it, never change it.
func (c *Content) Annotations() map[string]string { return c.annotations }

// GroupVersionKind returns the object's kind, in the version it is written in.
func (c *Content) GroupVersionKind() schema.GroupVersionKind {
	return c.id.GroupKind().WithVersion(c.version)
}

// Tree returns what the manifest says, as a tree that no one else has.
func (c *Content) Tree() *unstructured.Unstructured {
	tree := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(c.text, &tree); err != nil {
		panic(fmt.Sprintf("%s: what was encoded cannot be decoded: %v", c.id, err))
	}
	return newUnstructured(tree)
}

// draft returns the object's manifest as a tree.
func (o Object) draft() draft { return draft{o.Tree(), o.Origin} }

// ID returns the object's identity on the API server.
func (d draft) ID() ID { return IDOf(d.Unstructured) }

// IDOf returns the identity of an object.
func IDOf(tree *unstructured.Unstructured) ID {
	return ID{Group: tree.GroupVersionKind().Group, Kind: tree.GetKind(), Namespace: tree.GetNamespace(), Name: tree.GetName()}
}

// Kinds that kubesync treats apart.
var (
	// NamespaceKind has objects that others live in.
	NamespaceKind = schema.GroupKind{Kind: "Namespace"}
	// CRDKind has objects that define other kinds.
	CRDKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	// JobKind has objects that end: what has run is not corrected when it goes, as its
	// ttlSecondsAfterFinished may have removed it.
	JobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// Digest is a hash of text; zero stands for none.
type Digest [16]byte

// DigestOf hashes text.
func DigestOf(text []byte) Digest {
	sum := sha256.Sum256(text)
	return Digest(sum[:len(Digest{})])
}

// String returns the hash in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

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

// Home returns the Namespace on which it depends whether an object can be written: that
// in which it is or, of a Namespace, itself; "" for none.
func (id ID) Home() string {
	if id.GroupKind() == NamespaceKind {
		return id.Name
	}
	return id.Namespace
}

// Compare orders objects by kind, namespace and name.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		strings.Compare(id.Group, other.Group),
		strings.Compare(id.Kind, other.Kind),
		strings.Compare(id.Namespace, other.Namespace),
		strings.Compare(id.Name, other.Name),
	)
}

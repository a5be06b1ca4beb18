package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/openapi"
)

// Rules are what a set's objects are checked against.
type Rules struct {
	Tier Tier
	// Namespace is where namespaced objects go that name none; "" means default.
	Namespace string
	// NamespaceFromPod says that Namespace is merely the daemon's own.
	NamespaceFromPod bool
	// Namespaces are allow-lists; a namespace must be in every one that is not
	// nil. With any, of the cluster-scoped objects only these Namespaces are allowed.
	Namespaces [][]string
	// SystemNamespace reports which namespaces are closed to the application tier;
	// nil means none.
	SystemNamespace func(name string) bool
	// Scope returns how the cluster serves a kind. The kinds that the set's own
	// CustomResourceDefinitions define come on top. Nil means OfflineScope.
	Scope func(schema.GroupVersionKind) Scope
	// HasStatus reports whether a kind's status is a subresource, so that a
	// manifest's status says nothing. Nil means OfflineHasStatus.
	HasStatus func(schema.GroupVersionKind) bool
	// Lasting reports whether objects of a kind can be listed, watched and deleted.
	// Reviews and bindings, for example, are requests that leave nothing behind. Nil means
	// that all can.
	Lasting func(schema.GroupVersionKind) bool
	// Schemas, if not nil, are what the objects are held against, besides those of the
	// set's own CustomResourceDefinitions, which are added. That is for checks without a
	// cluster: the API server knows better.
	Schemas *openapi.Schemas
}

// Checked is a set of objects as it may be applied.
type Checked struct {
	// Objects are in the order of the manifests, with their namespaces filled in
	// and without what must not be sent.
	Objects []Object
	// Unserved are the objects of kinds that neither the cluster nor the set knows. They
	// are declared, and wait.
	Unserved []Unserved
	// Warnings report what was changed or left out, for a person.
	Warnings []string
}

// Unserved is an object whose kind is not known, so that it cannot be applied.
type Unserved struct {
	Object
	Reason string // what it waits for
}

// Checker checks one set again and again. What it has found of a manifest stands
// while the manifest is the very same (Load returns the same one for content that it
// knows) and the rules say the same of its kind and its namespace. The other rules
// must not change. Its zero value is ready; one goroutine at a time may use it.
type Checker struct {
	gate    *gate // nil until one is needed
	known   map[*Content]finding
	defined map[*Content]definition
}

// finding is what was found of a manifest that may be applied.
type finding struct {
	grounds
	prepared *Content
	warnings []string
}

// grounds are what the rules say of a manifest, besides what always holds.
type grounds struct {
	scope     Scope
	hasStatus bool
	system    bool // its namespace is a system namespace
}

// Check checks a set once.
func Check(objects []Object, rules Rules) (Checked, error) { return new(Checker).Check(objects, rules) }

// Check finds everything for which the objects may not be applied, and prepares
// them for the API server. The error is of type Problems; then nothing may be
// written for this set, and what is returned beside it is only good for display.
func (k *Checker) Check(objects []Object, rules Rules) (Checked, error) {
	c := check{
		rules:   rules.withDefaults(),
		before:  k.known,
		known:   make(map[*Content]finding, len(objects)),
		seen:    make(map[ID]Origin, len(objects)),
		checked: Checked{Objects: make([]Object, 0, len(objects))},
	}
	c.defined, k.defined = definitions(objects, k.defined)
	c.defineSchemas(objects)
	if rules.Tier != System {
		if k.gate == nil {
			var err error
			if k.gate, err = newGate(); err != nil {
				return Checked{}, JoinProblems(err)
			}
		}
		c.gate = k.gate
	}
	for _, o := range objects {
		c.object(o)
	}
	k.known = c.known
	return c.checked, c.problems.asError()
}

// withDefaults fills in what nil and "" stand for.
func (r Rules) withDefaults() Rules {
	if r.Namespace == "" {
		r.Namespace = metav1.NamespaceDefault
	}
	if r.Scope == nil {
		r.Scope = OfflineScope
	}
	if r.HasStatus == nil {
		r.HasStatus = OfflineHasStatus
	}
	if r.SystemNamespace == nil {
		r.SystemNamespace = func(string) bool { return false }
	}
	return r
}

// check is one run of a Checker.
type check struct {
	rules    Rules
	defined  setKinds
	gate     *gate // nil for the system tier
	before   map[*Content]finding
	known    map[*Content]finding
	seen     map[ID]Origin
	checked  Checked
	problems Problems
}

// object looks at one object and, if nothing is wrong, adds it to the result.
func (c *check) object(o Object) {
	scope, hasStatus := c.kind(o.GroupVersionKind())
	if c.rules.Lasting != nil && !c.rules.Lasting(o.GroupVersionKind()) {
		c.problem(o.draft(), fmt.Sprintf("objects of kind %s of %s cannot be declared: the API server does not let them be listed, watched and deleted",
			o.GroupVersionKind().Kind, o.GroupVersionKind().GroupVersion()))
		return
	}
	if fault := c.servedNowhere(o.GroupVersionKind()); fault != "" {
		c.problem(o.draft(), fault)
		return
	}
	found, known := c.before[o.Content]
	if !known || found.grounds != c.grounds(found.prepared.id, scope, hasStatus) {
		var fit bool
		if found, fit = c.judge(o, scope, hasStatus); !fit {
			return
		}
	}
	prepared := Object{found.prepared, o.Origin}
	if !c.once(prepared.ID(), o.Origin) {
		return
	}
	for _, warning := range found.warnings {
		c.checked.Warnings = append(c.checked.Warnings, problemOf(prepared.ID(), o.Origin, warning).String())
	}
	if scope == ScopeUnknown {
		c.checked.Unserved = append(c.checked.Unserved, Unserved{prepared, c.unknown(o.GroupVersionKind())})
		return
	}
	c.known[o.Content] = found
	c.checked.Objects = append(c.checked.Objects, prepared)
}

// grounds returns what the rules say of an object at its place.
func (c *check) grounds(id ID, scope Scope, hasStatus bool) grounds {
	return grounds{scope, hasStatus, c.gate != nil && c.rules.SystemNamespace(id.Namespace)}
}

// judge looks at a manifest that is not known, or not on these grounds. It notes
// what is wrong; fit reports that nothing is.
func (c *check) judge(o Object, scope Scope, hasStatus bool) (found finding, fit bool) {
	d := o.draft()
	before := len(c.problems)
	warnings, defaulted := c.place(d, scope)
	found.grounds = c.grounds(d.ID(), scope, hasStatus)
	c.allowed(d, scope, defaulted)
	for _, fault := range ownAnnotationFaults(d) {
		c.problem(d, fault)
	}
	faults, left := prepare(d, hasStatus)
	for _, fault := range faults {
		c.problem(d, fault)
	}
	if len(faults) == 0 {
		c.schema(d)
	}
	found.warnings = append(warnings, left...)
	if c.gate != nil {
		c.refuse(d, c.gate.pod(d)...)
	}
	var err error
	if found.prepared, err = newContent(d.Unstructured); err != nil {
		c.problem(d, err.Error())
	}
	if len(c.problems) > before {
		c.once(d.ID(), o.Origin)
		return finding{}, false
	}
	if bytes.Equal(found.prepared.text, o.text) {
		found.prepared.text = o.text // which the Loader holds anyway
	}
	return found, true
}

// problem notes a mistake of the manifest.
func (c *check) problem(o draft, text string) {
	c.problems = append(c.problems, problemOf(o.ID(), o.Origin, text))
}

// refuse notes what the configuration forbids.
func (c *check) refuse(o draft, texts ...string) {
	for _, text := range texts {
		p := problemOf(o.ID(), o.Origin, text)
		p.Refused = true
		c.problems = append(c.problems, p)
	}
}

// kind reports where the objects of a kind live, and whether their status is a
// subresource, according to the cluster or else to the set itself.
func (c *check) kind(gvk schema.GroupVersionKind) (Scope, bool) {
	defined, hasStatus, served := c.defined.lookup(gvk)
	hasStatus = hasStatus || c.rules.HasStatus(gvk)
	if scope := c.rules.Scope(gvk); scope != ScopeUnknown || !served {
		return scope, hasStatus
	}
	return defined.scope, hasStatus
}

// unknown says why a kind's objects must wait.
func (c *check) unknown(gvk schema.GroupVersionKind) string {
	text := fmt.Sprintf("waits for its kind: the cluster does not serve %s of %s", gvk.Kind, gvk.GroupVersion())
	if defined, found := c.defined[gvk.GroupKind()]; found {
		return fmt.Sprintf("%s, and the CustomResourceDefinition at %s does not serve that version", text, defined.origin)
	}
	return text + ", and no CustomResourceDefinition of this repo defines it"
}

// place puts an object where kubectl would: into the default namespace if it
// names none, which it reports, and out of any if its kind has none.
func (c *check) place(o draft, scope Scope) (warnings []string, defaulted bool) {
	switch namespace := o.GetNamespace(); {
	case scope == ScopeNamespaced && namespace == "":
		o.SetNamespace(c.rules.Namespace)
		return nil, true
	case scope == ScopeCluster && namespace != "":
		o.SetNamespace("")
		return []string{fmt.Sprintf("metadata.namespace %s is ignored: objects of this kind belong to no namespace", namespace)}, false
	}
	return nil, false
}

// allowed refuses objects by where they are and by what they are.
func (c *check) allowed(o draft, scope Scope, defaulted bool) {
	if c.gate != nil {
		hint := ""
		if defaulted && c.rules.NamespaceFromPod {
			hint = ", where it goes because neither it nor the repo's configuration names a namespace: name one"
		}
		c.refuse(o, c.gate.object(o, scope, c.rules.SystemNamespace, hint)...)
	}
	id := o.ID()
	namespace := id.Namespace
	if id.GroupKind() == NamespaceKind {
		namespace = id.Name
	}
	for _, list := range c.rules.Namespaces {
		switch {
		case list == nil, slices.Contains(list, namespace):
		case namespace != "":
			c.refuse(o, fmt.Sprintf("namespace %s is not among the allowed namespaces (%s)", namespace, strings.Join(list, ", ")))
		case scope == ScopeCluster:
			c.refuse(o, fmt.Sprintf("a cluster-scoped object, where only objects in the allowed namespaces (%s) and these Namespaces themselves may be written",
				strings.Join(list, ", ")))
		}
	}
}

// once refuses an object that is declared a second time.
func (c *check) once(id ID, at Origin) bool {
	first, twice := c.seen[id]
	if twice {
		c.problems = append(c.problems, problemOf(id, at, fmt.Sprintf("declared twice: %s is also at %s", id, first)))
		return false
	}
	c.seen[id] = at
	return true
}

package apply

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// SystemNamespace tells which namespaces are closed to the application tier;
	// nil means none.
	SystemNamespace func(name string) bool
	// Scope tells how the cluster serves a kind. The kinds that the set's own
	// CustomResourceDefinitions define come on top. Nil means OfflineScope.
	Scope func(schema.GroupVersionKind) Scope
	// HasStatus tells whether a kind's status is a subresource, so that a
	// manifest's status says nothing. Nil means OfflineHasStatus.
	HasStatus func(schema.GroupVersionKind) bool
}

// Checked is a set of objects as it may be applied.
type Checked struct {
	// Objects are in the order of the manifests, with their namespaces filled in
	// and without what must not be sent. They are copies: change them freely.
	Objects []Object
	// Parked are the objects whose kind nobody knows yet.
	Parked []Outcome
	// Warnings tell what was changed or left out, for a person.
	Warnings []string
}

// Check finds everything for which the objects may not be applied, and prepares
// them for the API server. The error is of type Problems; then nothing may be
// written for this set, and what is returned beside it is only good for display.
func Check(objects []Object, rules Rules) (Checked, error) {
	c := checker{rules: rules.withDefaults(), defined: definitions(objects), seen: map[ID]Origin{}}
	if rules.Tier != System {
		var err error
		if c.gate, err = newGate(); err != nil {
			return Checked{}, JoinProblems(err)
		}
	}
	for _, o := range objects {
		c.check(o)
	}
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
	return r
}

// checker is one run of Check.
type checker struct {
	rules    Rules
	defined  setKinds
	gate     *gate // nil for the system tier
	seen     map[ID]Origin
	checked  Checked
	problems Problems
}

// check looks at one object and, if nothing is wrong, adds it to the result.
func (c *checker) check(declared Object) {
	o := Object{Unstructured: declared.DeepCopy(), Origin: declared.Origin}
	scope, hasStatus := c.kind(o.GroupVersionKind())
	before := len(c.problems)

	defaulted := c.place(o, scope)
	c.allowed(o, scope, defaulted)
	c.once(o)
	for _, fault := range steeringFaults(o) {
		c.problem(o, fault)
	}
	faults, warnings := prepare(o, hasStatus)
	for _, fault := range faults {
		c.problem(o, fault)
	}
	for _, warning := range warnings {
		c.warn(o, warning)
	}
	if c.gate != nil {
		c.refuse(o, c.gate.pod(o)...)
	}

	switch {
	case len(c.problems) > before:
	case scope == ScopeUnknown:
		c.checked.Parked = append(c.checked.Parked, Outcome{
			ID: o.ID(), Origin: o.Origin, Action: Parked, Reason: c.unknown(o.GroupVersionKind()),
		})
	default:
		o.fingerprint()
		c.checked.Objects = append(c.checked.Objects, o)
	}
}

// problem notes a mistake of the manifest.
func (c *checker) problem(o Object, text string) {
	c.problems = append(c.problems, problemOf(o, text))
}

// refuse notes what the configuration forbids.
func (c *checker) refuse(o Object, texts ...string) {
	for _, text := range texts {
		p := problemOf(o, text)
		p.Refused = true
		c.problems = append(c.problems, p)
	}
}

// warn notes something a person should know.
func (c *checker) warn(o Object, text string) {
	c.checked.Warnings = append(c.checked.Warnings, problemOf(o, text).String())
}

// kind tells where the objects of a kind live, and whether their status is a
// subresource, according to the cluster or else to the set itself.
func (c *checker) kind(gvk schema.GroupVersionKind) (Scope, bool) {
	defined, hasStatus, served := c.defined.lookup(gvk)
	hasStatus = hasStatus || c.rules.HasStatus(gvk)
	if scope := c.rules.Scope(gvk); scope != ScopeUnknown || !served {
		return scope, hasStatus
	}
	return defined.scope, hasStatus
}

// unknown says why a kind's objects must wait.
func (c *checker) unknown(gvk schema.GroupVersionKind) string {
	text := fmt.Sprintf("waits for its kind: the cluster does not serve %s of %s", gvk.Kind, gvk.GroupVersion())
	if defined, found := c.defined[gvk.GroupKind()]; found {
		return fmt.Sprintf("%s, and the CustomResourceDefinition at %s does not serve that version", text, defined.origin)
	}
	return text + ", and no CustomResourceDefinition of this repo defines it"
}

// place puts an object where kubectl would: into the default namespace if it
// names none, and out of any if its kind has none. It reports the former.
func (c *checker) place(o Object, scope Scope) (defaulted bool) {
	switch namespace := o.GetNamespace(); {
	case scope == ScopeNamespaced && namespace == "":
		o.SetNamespace(c.rules.Namespace)
		return true
	case scope == ScopeCluster && namespace != "":
		o.SetNamespace("")
		c.warn(o, fmt.Sprintf("metadata.namespace %s is ignored: objects of this kind belong to no namespace", namespace))
	}
	return false
}

// allowed refuses objects by where they are and by what they are.
func (c *checker) allowed(o Object, scope Scope, defaulted bool) {
	if c.gate != nil {
		hint := ""
		if defaulted && c.rules.NamespaceFromPod {
			hint = ", where it goes because neither it nor the repo's configuration names a namespace: name one"
		}
		c.refuse(o, c.gate.object(o, scope, c.rules.SystemNamespace, hint)...)
	}
	id := o.ID()
	namespace := id.Namespace
	if id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
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
func (c *checker) once(o Object) {
	id := o.ID()
	if first, twice := c.seen[id]; twice {
		c.problem(o, fmt.Sprintf("declared twice: %s is also at %s", id, first))
		return
	}
	c.seen[id] = o.Origin
}

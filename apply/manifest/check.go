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
	// and without what must not be sent. The slice is shared with the Checker's memory:
	// read it, never change it.
	Objects []Object
	// Unserved are the objects of kinds that neither the cluster nor the set knows. They
	// are declared, and wait.
	Unserved []Unserved
	// Warnings report what was changed or left out, for a person.
	Warnings []string

	// Stay reports that these are, by identity and version, the objects of the Checker's last
	// check. Changed are then those of them that have another content or origin than in that.
	Stay    bool
	Changed []Object
}

// Unserved is an object whose kind is not known, so that it cannot be applied.
type Unserved struct {
	Object
	Reason string // what it waits for
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
	rules   Rules
	gate    *gate // nil for the system tier
	objects []Object

	defined     setKinds
	definitions map[*Content]definition
	kinds       map[schema.GroupVersionKind]ruling // what is known of those asked about
	system      map[string]bool                    // of namespaces asked about, which are system namespaces

	before   map[*Content]finding // of the last run
	known    map[*Content]finding
	seen     map[ID]Origin
	checked  Checked
	problems Problems
}

// ruling is what the rules say of a kind.
type ruling struct {
	scope     Scope
	hasStatus bool
	fault     string // why objects of it cannot be declared; "" if they can
}

func newCheck(objects []Object, rules Rules) *check {
	return &check{rules: rules.withDefaults(), objects: objects, kinds: map[schema.GroupVersionKind]ruling{}, system: map[string]bool{}}
}

// object looks at one object and, if nothing is wrong, adds it to the result.
func (c *check) object(o Object) {
	kind := c.kind(o.GroupVersionKind())
	if kind.fault != "" {
		c.problem(o.draft(), kind.fault)
		return
	}
	found, known := c.before[o.Content]
	if !known || found.grounds != c.grounds(found.prepared.id, kind) {
		var fit bool
		if found, fit = c.judge(o, kind); !fit {
			return
		}
	}
	prepared := Object{found.prepared, o.Origin}
	if !c.once(prepared.ID(), o.Origin) {
		return
	}
	c.warn(prepared, found.warnings)
	if kind.scope == ScopeUnknown {
		c.checked.Unserved = append(c.checked.Unserved, Unserved{prepared, c.unknown(o.GroupVersionKind())})
		return
	}
	found.origin = o.Origin
	c.known[o.Content] = found
	c.checked.Objects = append(c.checked.Objects, prepared)
}

// warn notes what was changed or left out of an object.
func (c *check) warn(o Object, warnings []string) {
	for _, warning := range warnings {
		c.checked.Warnings = append(c.checked.Warnings, problemOf(o.ID(), o.Origin, warning).String())
	}
}

// grounds returns what the rules say of an object at its place.
func (c *check) grounds(id ID, kind ruling) grounds {
	return grounds{kind.scope, kind.hasStatus, c.isSystem(id.Namespace)}
}

// isSystem reports whether a namespace is closed to the set.
func (c *check) isSystem(namespace string) bool {
	if c.gate == nil {
		return false
	}
	system, known := c.system[namespace]
	if !known {
		system = c.rules.SystemNamespace(namespace)
		c.system[namespace] = system
	}
	return system
}

// judge looks at a manifest that is not known, or not on these grounds. It notes
// what is wrong; fit reports that nothing is.
func (c *check) judge(o Object, kind ruling) (found finding, fit bool) {
	d := o.draft()
	before := len(c.problems)
	warnings, defaulted := c.place(d, kind.scope)
	found.grounds = c.grounds(d.ID(), kind)
	c.allowed(d, kind.scope, defaulted)
	for _, fault := range ownAnnotationFaults(d) {
		c.problem(d, fault)
	}
	faults, left := prepare(d, kind.hasStatus)
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

// kind returns what the rules say of a kind, and keeps it.
func (c *check) kind(gvk schema.GroupVersionKind) ruling {
	k, known := c.kinds[gvk]
	if !known {
		k = c.askOf(gvk)
		c.kinds[gvk] = k
	}
	return k
}

// askOf finds out where the objects of a kind live, and whether their status is a
// subresource, according to the cluster or else to the set itself.
func (c *check) askOf(gvk schema.GroupVersionKind) ruling {
	if c.rules.Lasting != nil && !c.rules.Lasting(gvk) {
		return ruling{fault: fmt.Sprintf("objects of kind %s of %s cannot be declared: the API server does not let them be listed, watched and deleted", gvk.Kind, gvk.GroupVersion())}
	}
	defined, hasStatus, served := c.defined.lookup(gvk)
	k := ruling{scope: c.rules.Scope(gvk), hasStatus: hasStatus || c.rules.HasStatus(gvk), fault: c.servedNowhere(gvk)}
	if k.scope == ScopeUnknown && served {
		k.scope = defined.scope
	}
	return k
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
		c.refuse(o, c.gate.object(o, scope, c.isSystem, hint)...)
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

package manifest

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Checker checks one set again and again. What it has found of a manifest stands
// while the manifest is the very same (Load returns the same one for content that it
// knows) and the rules say the same of its kind and its namespace. The other rules
// must not change. Its zero value is ready; one goroutine at a time may use it.
type Checker struct {
	gate *gate // nil until one is needed
	last check // zero before the first one
}

// finding is what was found of a manifest that may be applied.
type finding struct {
	grounds
	prepared *Content
	origin   Origin
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
	if rules.Tier != System && k.gate == nil {
		var err error
		if k.gate, err = newGate(); err != nil {
			return Checked{}, JoinProblems(err)
		}
	}
	c := newCheck(objects, rules)
	if rules.Tier != System {
		c.gate = k.gate
	}
	if !c.differences(k.last) {
		c.all(k.last)
	}
	k.last = *c
	k.last.rules = Rules{} // which hold on to what was known of the cluster
	return c.checked, c.problems.asError()
}

// all looks at every object.
func (c *check) all(last check) {
	c.before = last.known
	c.known, c.seen = make(map[*Content]finding, len(c.objects)), make(map[ID]Origin, len(c.objects))
	c.kinds, c.system = map[schema.GroupVersionKind]ruling{}, map[string]bool{}
	c.checked = Checked{Objects: make([]Object, 0, len(c.objects))}
	c.problems = nil
	c.defined, c.definitions = definitions(c.objects, last.definitions)
	c.defineSchemas(c.objects)
	for _, o := range c.objects {
		c.object(o)
	}
	c.before = nil
}

// edit is a place where a set differs from the last one: what was there, and what is now.
// Both are places among the objects; between edits they are the very same.
type edit struct{ from, to, newFrom, newTo int }

// differences looks at the objects that the last set did not have. It reports whether that
// was enough: it is not if the rules say something else of others, or if anything is wrong
// or waits, now or in the last set. What the last one found is used up.
func (c *check) differences(last check) bool {
	if !last.sound() || c.rules.Schemas != nil || !c.sameAnswers(last) {
		return false
	}
	edits := last.edits(c.objects)
	for _, e := range edits {
		if definesKinds(last.objects[e.from:e.to]) || definesKinds(c.objects[e.newFrom:e.newTo]) {
			return false
		}
	}
	c.before, c.known, c.seen, c.defined, c.definitions = last.known, last.known, last.seen, last.defined, last.definitions
	for _, e := range edits {
		for _, o := range last.checked.Objects[e.from:e.to] {
			delete(c.seen, o.ID())
		}
	}
	c.checked.Objects = make([]Object, 0, len(c.objects))
	at, stay := 0, map[*Content]bool{}
	for _, e := range edits {
		c.checked.Objects = append(c.checked.Objects, last.checked.Objects[at:e.from]...)
		for _, o := range c.objects[e.newFrom:e.newTo] {
			c.object(o)
			stay[o.Content] = true
		}
		at = e.to
	}
	if !c.sound() {
		return false
	}
	c.checked.Objects = append(c.checked.Objects, last.checked.Objects[at:]...)
	c.checked.Stay, c.checked.Changed = c.changed(last, edits)
	for _, e := range edits {
		for _, o := range last.objects[e.from:e.to] {
			if !stay[o.Content] {
				delete(c.known, o.Content)
			}
		}
	}
	if len(last.checked.Warnings)+len(c.checked.Warnings) > 0 {
		c.warnAgain()
	}
	return true
}

// changed returns what of the checked objects edits have made different, and whether the
// edits leave all objects that there were, and no others.
func (c *check) changed(last check, edits []edit) (stay bool, changed []Object) {
	before := map[ID]schema.GroupVersionKind{}
	for _, e := range edits {
		for _, o := range last.checked.Objects[e.from:e.to] {
			before[o.ID()] = o.GroupVersionKind()
		}
		changed = append(changed, c.checked.Objects[e.newFrom:e.newTo]...)
	}
	// No object is declared twice, so that as many as were there are the very ones.
	stay = len(changed) == len(before) && !slices.ContainsFunc(changed, func(o Object) bool { return before[o.ID()] != o.GroupVersionKind() })
	return stay, changed
}

// sound reports whether each object looked at may be applied now.
func (c *check) sound() bool {
	return c.seen != nil && len(c.problems) == 0 && len(c.checked.Unserved) == 0
}

// sameAnswers reports whether the rules say what they said last, of all that they were
// asked about.
func (c *check) sameAnswers(last check) bool {
	c.defined = last.defined
	for gvk, was := range last.kinds {
		if c.kind(gvk) != was {
			return false
		}
	}
	for namespace, was := range last.system {
		if c.isSystem(namespace) != was {
			return false
		}
	}
	return true
}

// edits compares the objects of a check with others. What is the same in both is found if
// it is in the same order.
func (c *check) edits(now []Object) []edit {
	var edits []edit
	i, j := 0, 0
	same := func() bool { return i < len(c.objects) && j < len(now) && c.objects[i] == now[j] }
	for i < len(c.objects) || j < len(now) {
		if same() {
			i, j = i+1, j+1
			continue
		}
		e := edit{from: i, newFrom: j}
		for (i < len(c.objects) || j < len(now)) && !same() {
			if i == len(c.objects) || j < len(now) && !c.had(now[j]) {
				j++
			} else {
				i++
			}
		}
		e.to, e.newTo = i, j
		edits = append(edits, e)
	}
	return edits
}

// had reports whether an object was there, at that place of that file.
func (c *check) had(o Object) bool {
	found, known := c.known[o.Content]
	return known && found.origin == o.Origin
}

// definesKinds reports whether there are CustomResourceDefinitions among some objects.
func definesKinds(objects []Object) bool {
	return slices.ContainsFunc(objects, func(o Object) bool { return o.ID().GroupKind() == CRDKind })
}

// warnAgain puts together the warnings about all objects, in their order.
func (c *check) warnAgain() {
	c.checked.Warnings = nil
	for i, o := range c.objects {
		c.warn(c.checked.Objects[i], c.known[o.Content].warnings)
	}
}

package main

import (
	"cmp"
	"slices"
	"strings"
)

// id names an object as the model does: the walk's prefix is added where servers
// come in, so that many walks share a cluster.
type id struct {
	kind      string
	namespace string // a, b or c; empty for what is cluster-scoped
	name      string
}

func (i id) String() string {
	if i.namespace == "" {
		return i.kind + "/" + i.name
	}
	return i.kind + "/" + i.namespace + "/" + i.name
}

func compareIDs(a, b id) int {
	return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}

// The kinds that walks use.
const (
	configMap      = "ConfigMap"
	secret         = "Secret"
	service        = "Service"
	serviceAccount = "ServiceAccount"
	role           = "Role"
	roleBinding    = "RoleBinding"
	deployment     = "Deployment"
	volumeClaim    = "PersistentVolumeClaim"
	widget         = "Widget" // a custom resource
	namespaceKind  = "Namespace"
	priorityClass  = "PriorityClass"
	crd            = "CustomResourceDefinition"
)

// movable is the Namespace that repos declare; a and b are there from the start.
func movable() id { return id{kind: namespaceKind, name: "c"} }

// definition is the CRD of the widgets.
func definition() id { return id{kind: crd, name: "widgets"} }

// universe lists what repos may declare, in a fixed order.
func universe() []id {
	all := []id{movable(), definition(), {kind: priorityClass, name: "one"}, {kind: volumeClaim, namespace: "a", name: "one"}}
	for _, ns := range []string{"a", "b", "c"} {
		for _, name := range []string{"one", "two", "three"} {
			all = append(all, id{configMap, ns, name})
		}
		for _, kind := range []string{secret, service, serviceAccount, role, roleBinding, deployment, widget} {
			all = append(all, id{kind, ns, "one"})
		}
	}
	slices.SortFunc(all, compareIDs)
	return all
}

// undeclared lists what no repo ever declares.
func undeclared() []id {
	var all []id
	for _, ns := range []string{"a", "b"} {
		all = append(all, id{configMap, ns, "foreign"}, id{secret, ns, "foreign"})
	}
	return all
}

// needs returns what has to be there before the object can be; nil for nothing.
func (i id) needs() []id {
	var needed []id
	if i.namespace == "c" {
		needed = append(needed, movable())
	}
	if i.kind == widget {
		needed = append(needed, definition())
	}
	return needed
}

// foundation reports whether others need objects like this one.
func (i id) foundation() bool { return i.kind == namespaceKind || i.kind == crd }

// forApplications reports whether an application repo may declare it.
func (i id) forApplications() bool { return i.namespace != "" && i.kind != widget }

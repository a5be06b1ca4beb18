package main

import (
	"encoding/base64"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels and annotations that walks look at. The former two are declared, the others
// are what another writer puts on an object.
const (
	variantLabel    = "example.com/variant"
	oddAnnotation   = "example.com/odd" // only of odd variants, so that fields leave git as well
	handAnnotation  = "example.com/hand"
	otherAnnotation = "example.com/other"
	csaAnnotation   = "example.com/csa"

	partOfLabel        = "applyset.kubernetes.io/part-of"
	parentIDLabel      = "applyset.kubernetes.io/id"
	pruneAnnotation    = "kubesync.io/prune"
	suspendAnnotation  = "kubesync.io/suspend"
	ignoreAnnotation   = "kubesync.io/ignore"
	approveAnnotation  = "kubesync.io/approve-prune"
	fieldManager       = "kubesync"
	approvalTrailer    = "Kubesync-Prune: approved"
	bindingName        = "kubesync"
	widgetGroupSuffix  = ".example.com"
	systemReadyVersion = "v1"
)

// secretValue is what all values of Secrets begin with: kubesync may tell it no one.
const secretValue = "canary-in-secret-"

// place says where a walk's objects are in the cluster.
type place struct{ prefix string }

// namespace returns the name of a namespace of the model.
func (p place) namespace(name string) string { return p.prefix + "-" + name }

// home is where the daemons keep their Leases and parents.
func (p place) home() string { return p.namespace("home") }

// group is the API group of the widgets.
func (p place) group() string { return p.prefix + widgetGroupSuffix }

// name returns what an object is called in the cluster.
func (p place) name(i id) string {
	switch {
	case i.kind == crd:
		return i.name + "." + p.group()
	case i.namespace == "":
		return p.namespace(i.name)
	}
	return i.name
}

// typeOf says how a kind is called in manifests and in URLs.
func (p place) typeOf(kind string) (schema.GroupVersionKind, schema.GroupVersionResource) {
	groups := map[string]schema.GroupVersionResource{
		configMap:      {Version: "v1", Resource: "configmaps"},
		secret:         {Version: "v1", Resource: "secrets"},
		service:        {Version: "v1", Resource: "services"},
		serviceAccount: {Version: "v1", Resource: "serviceaccounts"},
		volumeClaim:    {Version: "v1", Resource: "persistentvolumeclaims"},
		namespaceKind:  {Version: "v1", Resource: "namespaces"},
		role:           {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		roleBinding:    {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		deployment:     {Group: "apps", Version: "v1", Resource: "deployments"},
		priorityClass:  {Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
		crd:            {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		widget:         {Group: p.group(), Version: "v1", Resource: "widgets"},
	}
	gvr := groups[kind]
	return gvr.GroupVersion().WithKind(kind), gvr
}

// fields are some of an object, as JSON has them.
type fields = map[string]any

// manifest renders what a repo says of an object.
func (p place) manifest(i id, e entry) fields {
	gvk, _ := p.typeOf(i.kind)
	variant := fmt.Sprintf("v%d", e.variant)
	annotations := fields{}
	if e.variant%2 == 1 {
		annotations[oddAnnotation] = "yes"
	}
	if e.keep {
		annotations[pruneAnnotation] = "false"
	}
	if e.ignore {
		annotations[ignoreAnnotation] = "data.value"
	}
	meta := fields{"name": p.name(i), "labels": fields{variantLabel: variant}}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	if i.namespace != "" {
		meta["namespace"] = p.namespace(i.namespace)
	}
	object := fields{"apiVersion": gvk.GroupVersion().String(), "kind": i.kind, "metadata": meta}
	maps.Copy(object, p.content(i, e, variant))
	if e.invalid {
		object["spam"] = "eggs"
	}
	return object
}

// content renders what is particular to a kind.
func (p place) content(i id, e entry, variant string) fields {
	labels := fields{"app": i.name}
	switch i.kind {
	case configMap:
		data := fields{"value": variant}
		if e.variant%2 == 1 {
			data["odd"] = "yes"
		}
		return fields{"data": data}
	case secret:
		return fields{"data": fields{"value": base64.StdEncoding.EncodeToString([]byte(secretValue + variant))}}
	case service:
		return fields{"spec": fields{"selector": labels, "ports": []any{fields{"port": int64(80), "protocol": "TCP", "targetPort": int64(8000 + e.variant)}}}}
	case role:
		return fields{"rules": []any{fields{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}, "resourceNames": []any{variant}}}}
	case roleBinding:
		return fields{
			"roleRef":  fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
			"subjects": []any{fields{"kind": "ServiceAccount", "name": variant, "namespace": p.namespace(i.namespace)}},
		}
	case deployment:
		container := fields{"name": "main", "image": "example.com/main:" + variant}
		if e.variant%2 == 1 {
			container["env"] = []any{fields{"name": "ODD", "value": "yes"}}
		}
		return fields{"spec": fields{
			"replicas": int64(e.variant % 3),
			"selector": fields{"matchLabels": labels},
			"template": fields{"metadata": fields{"labels": labels}, "spec": fields{"containers": []any{container}}},
		}}
	case volumeClaim:
		return fields{"spec": fields{"accessModes": []any{"ReadWriteOnce"}, "resources": fields{"requests": fields{"storage": "1Gi"}}}}
	case priorityClass:
		return fields{"value": int64(1000), "description": variant}
	case widget:
		return fields{"spec": fields{"value": variant}}
	case crd:
		return fields{"spec": fields{
			"group": p.group(), "scope": "Namespaced",
			"names": fields{"kind": widget, "plural": "widgets", "singular": "widget"},
			"versions": []any{fields{"name": "v1", "served": true, "storage": true, "schema": fields{"openAPIV3Schema": fields{
				"type": "object", "properties": fields{"spec": fields{"type": "object", "properties": fields{"value": fields{"type": "string"}}}},
			}}}},
		}}
	}
	return nil
}

// spoil changes a field that repos declare, as a person's hand would.
func spoil(kind string, object fields) {
	set := func(value any, path ...string) {
		at := object
		for _, key := range path[:len(path)-1] {
			next, ok := at[key].(fields)
			if !ok {
				next = fields{}
				at[key] = next
			}
			at = next
		}
		at[path[len(path)-1]] = value
	}
	switch kind {
	case configMap:
		set("spoilt", "data", "value")
	case secret:
		set(base64.StdEncoding.EncodeToString([]byte(secretValue+"spoilt")), "data", "value")
	case deployment:
		set(int64(3), "spec", "replicas")
	case priorityClass:
		set("spoilt", "description")
	case widget:
		set("spoilt", "spec", "value")
	case role:
		object["rules"] = []any{}
	case roleBinding:
		object["subjects"] = []any{}
	case service:
		if spec, ok := object["spec"].(fields); ok {
			spec["sessionAffinity"] = "ClientIP" // not ours; the label below is
		}
		set("spoilt", "metadata", "labels", variantLabel)
	default:
		set("spoilt", "metadata", "labels", variantLabel)
	}
}

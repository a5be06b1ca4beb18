package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// clients are the bench's own, for looking; they ask as an administrator.
type clients struct {
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

func newClients(config *rest.Config) (clients, error) {
	m, err := metadata.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("client: %w", err)
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("client: %w", err)
	}
	return clients{metadata: m, dynamic: d}, nil
}

// resourceOf is what a kind is called in URLs: of the kinds that are generated
// here, the plural in lower case.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
}

// keyOf names an object.
func keyOf(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// versions returns the resourceVersions of all objects of a set, and an error
// unless all of them are there.
func (c clients) versions(ctx context.Context, s set) (map[string]string, error) {
	live := map[string]string{}
	for kind := range s.kinds() {
		list, err := c.metadata.Resource(resourceOf(kind)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for _, o := range list.Items {
			live[keyOf(kind.Kind, o.Namespace, o.Name)] = o.ResourceVersion
		}
	}
	versions := map[string]string{}
	for _, o := range s.objects {
		key := keyOf(o.GetKind(), o.GetNamespace(), o.GetName())
		version, found := live[key]
		if !found {
			return nil, fmt.Errorf("%s is not in the cluster", key)
		}
		versions[key] = version
	}
	return versions, nil
}

// changed counts the objects that were written between two looks.
func changed(before, after map[string]string) int {
	n := 0
	for key := range maps.Keys(before) {
		if before[key] != after[key] {
			n++
		}
	}
	return n
}

// clone copies a set's objects for a user who changes what it is given.
func (s set) clone() []*unstructured.Unstructured {
	copies := make([]*unstructured.Unstructured, len(s.objects))
	for i, o := range s.objects {
		copies[i] = o.DeepCopy()
	}
	return copies
}

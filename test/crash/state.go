package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// snapshot is all that a cluster holds: objects by "Kind namespace/name".
type snapshot map[string]unstructured.Unstructured

// state is what shall be the same in every run, by the same names.
type state map[string]string

// look reads the whole cluster, less what is noise here.
func (s *site) look(ctx context.Context) (snapshot, error) {
	var mu sync.Mutex
	found := snapshot{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, resource := range s.resources {
		group.Go(func() error {
			list, err := s.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				return nil // its CRD is not there, now
			}
			if err != nil {
				return fmt.Errorf("list %s: %w", resource.Resource, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, object := range list.Items {
				if !comesByItself(object) {
					found[nameOf(object)] = object
				}
			}
			return nil
		})
	}
	return found, group.Wait()
}

// resources lists the kinds that a look covers: all that can be listed, less those
// that the control plane makes and unmakes on its own, and that of the story's CRD.
func resources(client discovery.DiscoveryInterface) ([]schema.GroupVersionResource, error) {
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	noise := map[string]bool{
		"events": true, "leases": true, "endpoints": true, "endpointslices": true, "apiservices": true, "componentstatuses": true,
		"flowschemas": true, "prioritylevelconfigurations": true, "replicasets": true, "pods": true, "controllerrevisions": true,
		"servicecidrs": true, "ipaddresses": true, "nodes": true, "csinodes": true,
	}
	found := []schema.GroupVersionResource{{Group: "example.com", Version: "v1", Resource: "crontabs"}}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		for _, kind := range list.APIResources {
			if slices.Contains(kind.Verbs, "list") && !noise[kind.Name] {
				found = append(found, version.WithResource(kind.Name))
			}
		}
	}
	return found, nil
}

// comesByItself tells what controllers put into each Namespace.
func comesByItself(object unstructured.Unstructured) bool {
	return object.GetKind() == "ConfigMap" && object.GetName() == "kube-root-ca.crt" ||
		object.GetKind() == "ServiceAccount" && object.GetName() == "default"
}

func nameOf(object unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// compare reduces what is seen to what every run has to come to. What was there
// before the story is left out: it is held against what it was.
func (s *site) compare(seen snapshot) (state, error) {
	reduced := state{}
	for name, object := range seen {
		if _, before := s.baseline[name]; before {
			continue
		}
		text, err := s.reduce(object, seen)
		if err != nil {
			return nil, err
		}
		reduced[name] = text
	}
	return reduced, nil
}

// reduce words an object without what is particular to a run: uids, versions, times,
// addresses, the proofs in a parent, and what controllers say of it.
func (s *site) reduce(object unstructured.Unstructured, among snapshot) (string, error) {
	uid := string(object.GetUID())
	object = *object.DeepCopy()
	narrow(object, among)
	fields := object.Object
	for _, path := range [][]string{
		{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"},
		{"metadata", "annotations", "deployment.kubernetes.io/revision"}, {"metadata", "annotations", "deprecated.daemonset.template.generation"},
		{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"data", "written"},
		{"binaryData", "members"}, // UIDs: others in every run
	} {
		unstructured.RemoveNestedField(fields, path...)
	}
	if annotations := object.GetAnnotations(); len(annotations) == 0 {
		unstructured.RemoveNestedField(fields, "metadata", "annotations")
	}
	if proofs, found, _ := unstructured.NestedString(fields, "binaryData", "proofs"); found {
		if err := unstructured.SetNestedField(fields, strconv.Itoa(len(proofs))+" bytes", "binaryData", "proofs"); err != nil {
			return "", err
		}
	}
	if object.GetDeletionTimestamp() != nil {
		if err := unstructured.SetNestedField(fields, "being deleted", "metadata", "deletionTimestamp"); err != nil {
			return "", err
		}
	}
	if err := unstructured.SetNestedSlice(fields, ownership(object), "metadata", "managedFields"); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return "", fmt.Errorf("%s: %w", nameOf(object), err)
	}
	return strings.NewReplacer(uid, "UID", s.git.Base(), "GIT", s.gitProxy.URL(), "GIT").Replace(string(text)), nil
}

// narrow takes out of a parent what names nothing that there is. A parent may name more
// than its set has: of a kind that is not served no one can know what is left.
func narrow(parent unstructured.Unstructured, among snapshot) {
	annotations := parent.GetAnnotations()
	for key, gone := range map[string]func(string) bool{
		"applyset.kubernetes.io/contains-group-kinds": func(kind string) bool {
			_, there := among["CustomResourceDefinition crontabs.example.com"]
			return kind == "CronTab.example.com" && !there
		},
		"applyset.kubernetes.io/additional-namespaces": func(namespace string) bool {
			_, there := among["Namespace "+namespace]
			return !there
		},
	} {
		if named, found := annotations[key]; found {
			annotations[key] = strings.Join(slices.DeleteFunc(strings.Split(named, ","), gone), ",")
			parent.SetAnnotations(annotations)
		}
	}
}

// ownership is managedFields without times and without the control plane's entries.
func ownership(object unstructured.Unstructured) []any {
	var entries []string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.Manager == "kube-controller-manager" || entry.Manager == "kube-apiserver" {
			continue
		}
		fields := ""
		if entry.FieldsV1 != nil {
			fields = entry.FieldsV1.GetRawString()
		}
		entries = append(entries, fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, entry.APIVersion, fields))
	}
	slices.Sort(entries)
	sorted := make([]any, len(entries))
	for i, entry := range entries {
		sorted[i] = entry
	}
	return sorted
}

// difference words what is not as it was in the uninterrupted run, "" for nothing.
func difference(want, got state) string {
	names := map[string]bool{}
	for name := range want {
		names[name] = true
	}
	for name := range got {
		names[name] = true
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if want[name] == got[name] {
			continue
		}
		switch {
		case got[name] == "":
			fmt.Fprintf(&text, "%s is missing\n", name)
		case want[name] == "":
			fmt.Fprintf(&text, "%s should not be there:\n%s\n", name, got[name])
		default:
			fmt.Fprint(&text, udiff.Unified(name+" uninterrupted", name+" now", want[name], got[name]))
		}
	}
	return text.String()
}

package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	testlab "github.com/kubesync/kubesync/test/lab"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// foreignManifests stand around all the time, in the namespaces of the story and
// among its kinds: no one's, other appliers', and such that look like kubesync's own.
const foreignManifests = `
{manager: kubectl-create, apiVersion: v1, kind: Namespace, metadata: {name: team}}
---
{manager: kubectl-create, apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{manager: kubectl-create, apiVersion: v1, kind: ConfigMap, metadata: {name: by-hand, namespace: default}, data: {text: mine}}
---
{manager: kubectl-create, apiVersion: v1, kind: ConfigMap, metadata: {name: by-hand, namespace: team}, data: {text: mine}}
---
{manager: kubectl-create, apiVersion: v1, kind: Secret, metadata: {name: by-hand, namespace: shop}, data: {text: bWluZQ==}}
---
{manager: kubectl-create, apiVersion: v1, kind: Service, metadata: {name: by-hand, namespace: team}, spec: {selector: {app: mine}, ports: [{port: 99}]}}
---
{manager: kubectl-create, apiVersion: v1, kind: ConfigMap, metadata: {name: other-set, namespace: team, labels: {applyset.kubernetes.io/part-of: applyset-of-another-v1}}, data: {text: theirs}}
---
{manager: kubectl-create, apiVersion: v1, kind: ConfigMap, metadata: {name: copied, namespace: team, labels: {applyset.kubernetes.io/part-of: PLATFORM}}, data: {text: theirs}}
---
{apply: kustomize-controller, apiVersion: v1, kind: ConfigMap, metadata: {name: flux, namespace: team}, data: {text: theirs}}
---
{apply: kustomize-controller, apiVersion: v1, kind: ConfigMap, metadata: {name: flux, namespace: shop, labels: {applyset.kubernetes.io/part-of: SHOP}}, data: {text: theirs}}
---
{apply: kubesync, apiVersion: v1, kind: ConfigMap, metadata: {name: same-name, namespace: team}, data: {text: theirs}}
---
{apply: kubesync, apiVersion: v1, kind: ConfigMap, metadata: {name: restored, namespace: team, labels: {applyset.kubernetes.io/part-of: PLATFORM}}, data: {text: theirs}}
---
{apply: kubesync, apiVersion: v1, kind: Secret, metadata: {name: restored, namespace: team, labels: {applyset.kubernetes.io/part-of: PLATFORM}}, data: {text: bWluZQ==}}
---
{apply: helm, apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: helm, namespace: team}, rules: []}
---
{manager: kubectl-create, apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: story-other}, value: 1}
---
{manager: kubectl-create, apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: by-hand, namespace: team}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`

// plurals are the resources of the kinds of these objects.
func plurals() map[string]string {
	return map[string]string{
		"Namespace": "namespaces", "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services",
		"Role": "roles", "PriorityClass": "priorityclasses", "PersistentVolumeClaim": "persistentvolumeclaims",
	}
}

// makeForeign makes them, and remembers them and all else that is there. The two
// Namespaces among them are declared by git later on, which makes them none.
func (s *site) makeForeign(ctx context.Context) error {
	manifests := strings.NewReplacer("PLATFORM", setID("platform"), "SHOP", setID("shop")).Replace(foreignManifests)
	names := map[string]bool{}
	for _, text := range strings.Split(manifests, "---\n") {
		object := unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return fmt.Errorf("objects of other owners: %w", err)
		}
		manager, _, _ := unstructured.NestedString(object.Object, "manager")
		applier, _, _ := unstructured.NestedString(object.Object, "apply")
		delete(object.Object, "manager")
		delete(object.Object, "apply")
		kind := object.GroupVersionKind()
		client := s.dynamic.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: plurals()[kind.Kind]}).Namespace(object.GetNamespace())
		var err error
		if applier != "" {
			_, err = client.Apply(ctx, object.GetName(), &object, metav1.ApplyOptions{FieldManager: applier})
		} else {
			_, err = client.Create(ctx, &object, metav1.CreateOptions{FieldManager: manager})
		}
		if err != nil {
			return fmt.Errorf("object %s of another owner: %w", nameOf(object), err)
		}
		names[nameOf(object)] = kind.Kind != "Namespace"
	}
	return s.settle(ctx, names)
}

// settle waits until controllers have written to objects of other owners, such as a
// claim's finalizer, and notes what there is before the story.
func (s *site) settle(ctx context.Context, names map[string]bool) error {
	versions := ""
	for {
		seen, err := s.look(ctx)
		if err != nil {
			return err
		}
		now := ""
		s.foreign = snapshot{}
		for _, name := range sorted(names) {
			object, found := seen[name]
			if !found {
				return fmt.Errorf("object %s of another owner is not there", name)
			}
			now += object.GetResourceVersion() + " "
			if names[name] {
				s.foreign[name] = object
			} else {
				delete(seen, name)
			}
		}
		if s.baseline = seen; now == versions {
			return nil
		}
		versions = now
		if err := testlab.Sleep(ctx, settleTime); err != nil {
			return err
		}
	}
}

// untouched reports which objects of other owners are not as they were.
func (s *site) untouched(seen snapshot) error {
	var text strings.Builder
	for _, name := range sorted(s.foreign) {
		was, is := s.foreign[name], seen[name]
		switch {
		case is.Object == nil:
			fmt.Fprintf(&text, "%s, which is not kubesync's, is gone\n", name)
		case is.GetUID() != was.GetUID() || is.GetResourceVersion() != was.GetResourceVersion():
			fmt.Fprintf(&text, "%s, which is not kubesync's, was written: uid %s, version %s; now %s, %s\n",
				name, was.GetUID(), was.GetResourceVersion(), is.GetUID(), is.GetResourceVersion())
		}
	}
	for _, name := range sorted(s.baseline) {
		if was, is := s.baseline[name], seen[name]; is.GetUID() != was.GetUID() {
			fmt.Fprintf(&text, "%s, which was there before, is gone or another\n", name)
		}
	}
	if text.Len() > 0 {
		return fmt.Errorf("%s", text.String())
	}
	return nil
}

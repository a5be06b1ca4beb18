package apply

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podTemplatePath returns where the objects of a kind hold their pod template;
// for a Pod, which is like one itself, the empty path. These are all the kinds
// of Kubernetes that make pods, in whatever version of their API.
func podTemplatePath(kind schema.GroupKind) (path []string, hasTemplate bool) {
	switch kind {
	case schema.GroupKind{Kind: "Pod"}:
		return nil, true
	case schema.GroupKind{Kind: "PodTemplate"}:
		return []string{"template"}, true
	case schema.GroupKind{Kind: "ReplicationController"},
		schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "extensions", Kind: "Deployment"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "extensions", Kind: "DaemonSet"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "extensions", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "batch", Kind: "Job"}:
		return []string{"spec", "template"}, true
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []string{"spec", "jobTemplate", "spec", "template"}, true
	}
	return nil, false
}

// podTemplate returns the part of an object that is its pod template; nil if the
// object declares none or something that is no mapping.
func podTemplate(object map[string]any, kind schema.GroupKind) map[string]any {
	path, hasTemplate := podTemplatePath(kind)
	if !hasTemplate {
		return nil
	}
	return mapAt(object, path...)
}

// typedPodTemplate converts an object's pod template.
func typedPodTemplate(object map[string]any, kind schema.GroupKind) (*corev1.PodTemplateSpec, error) {
	template := podTemplate(object, kind)
	if template["spec"] == nil {
		return nil, fmt.Errorf("it has no pod spec")
	}
	typed := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, typed); err != nil {
		return nil, err
	}
	return typed, nil
}

// containerLists names the fields of a pod spec that hold containers.
func containerLists() []string {
	return []string{"initContainers", "containers", "ephemeralContainers"}
}

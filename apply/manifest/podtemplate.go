package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// PodTemplatePath returns where the objects of a kind hold their pod template;
// for a Pod, which is like one itself, the empty path. These are all the kinds
// of Kubernetes that make pods, in whatever version of their API.
func PodTemplatePath(kind schema.GroupKind) (path []string, hasTemplate bool) {
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

// PodTemplate returns the part of an object that is its pod template; nil if the
// object declares none or something that is no mapping.
func PodTemplate(object map[string]any, kind schema.GroupKind) map[string]any {
	path, hasTemplate := PodTemplatePath(kind)
	if !hasTemplate {
		return nil
	}
	return MapAt(object, path...)
}

// typedPodTemplate converts an object's pod template. Its errors show no values:
// what is wrong may be a password without quotes.
func typedPodTemplate(object map[string]any, kind schema.GroupKind) (*corev1.PodTemplateSpec, error) {
	template := PodTemplate(object, kind)
	if template["spec"] == nil {
		return nil, errors.New("it has no pod spec")
	}
	text, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	typed := &corev1.PodTemplateSpec{}
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, typed)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		got, _, _ := strings.Cut(wrong.Value, " ") // behind the type comes the value
		return nil, fmt.Errorf("%s holds %s where %s belongs", wrong.Field, got, wrong.Type)
	}
	return typed, err
}

// containerLists names the fields of a pod spec that hold containers.
func containerLists() []string {
	return []string{"initContainers", "containers", "ephemeralContainers"}
}

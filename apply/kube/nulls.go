package kube

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withoutNulls sends an object and, if the API server refuses fields of it for being
// null, sends it again without these, which it warns of.
//
// Client-side apply leaves out all that is null. Server-side apply sends it, and the
// API server takes null as absent in its own kinds; in a custom resource it stores it
// where the schema allows null, or anything, and refuses it elsewhere. What is stored
// can mean something (in the values of a Helm chart, that a default is unset), so it
// is not left out beforehand: only the API server knows the schema.
func withoutNulls(object *unstructured.Unstructured, send func(*unstructured.Unstructured) (Answer, error)) (answer Answer, warnings []string, err error) {
	answer, err = send(object)
	refused := refusedNulls(err)
	if len(refused) == 0 {
		return answer, nil, err
	}
	lighter := object.DeepCopy()
	dropped := dropNulls(lighter.Object, "", refused)
	if len(dropped) == 0 {
		return answer, nil, err
	}
	slices.Sort(dropped)
	answer, err = send(lighter)
	return answer, []string{fmt.Sprintf("left out, since they are null and may not be: %s", strings.Join(dropped, ", "))}, err
}

// refusedNulls returns the fields that the API server refuses for being null.
func refusedNulls(err error) map[string]bool {
	status, answered := Status(err)
	if !answered || status.Code != http.StatusUnprocessableEntity || status.Details == nil {
		return nil
	}
	refused := map[string]bool{}
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeTypeInvalid && strings.HasSuffix(cause.Message, `: "null"`) {
			refused[cause.Field] = true
		}
	}
	return refused
}

// dropNulls removes those fields of a value that are null and refused, and returns
// their paths. Items of lists stay: without one, the others would mean something else.
func dropNulls(value any, at string, refused map[string]bool) (dropped []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			path := strings.TrimPrefix(at+"."+key, ".")
			if child == nil && refused[path] {
				delete(v, key)
				dropped = append(dropped, path)
				continue
			}
			dropped = append(dropped, dropNulls(child, path, refused)...)
		}
	case []any:
		for i, item := range v {
			dropped = append(dropped, dropNulls(item, fmt.Sprintf("%s[%d]", at, i), refused)...)
		}
	}
	return dropped
}

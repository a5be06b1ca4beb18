package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubesync/kubesync/apply/manifest"
)

// typedPatchPrefix is how the API server starts what it found wrong while it
// read an applied object against its schema, in front of the object's name:
// "failed to create typed patch object (ns/n; apps/v1, Kind=Deployment): .spec…".
var typedPatchPrefix = regexp.MustCompile(`^failed to create typed patch object \([^)]*\): `)

// conversionPrefix is how the API server starts what it found wrong when it read an
// applied object into its own type, which comes after that: an amount that is none, a
// fraction where an integer belongs. What a conversion webhook fails with starts
// otherwise.
var conversionPrefix = regexp.MustCompile(`^failed to convert new object \([^)]*\) to proper version: unable to convert unstructured object to [^:]*: `)

// typedValue is how an error of typing quotes the value it did not expect:
// "expected string, got &value.valueUnstructured{Value:…}", "expected boolean, got
// &{…}".
var typedValue = regexp.MustCompile(`(got) &?(?:value\.\S+)?\{.*\}`)

// deniedByWebhook is how the API server passes on that an admission webhook refuses an
// object, with whatever code that has chosen.
var deniedByWebhook = regexp.MustCompile(`^admission webhook ".*" denied the request`)

// ManifestError returns what is wrong with a manifest when the API server says
// that it can never be accepted as it stands. Errors of typing come as HTTP 500
// with no reason, although trying again is useless.
func ManifestError(err error) (error, bool) {
	status, ok := Status(err)
	if !ok {
		return nil, false
	}
	switch text := status.Message; {
	case deniedByWebhook.MatchString(text): // which may think otherwise tomorrow, or be gone
		return nil, false
	case status.Code == http.StatusInternalServerError && typedPatchPrefix.MatchString(text):
		return fmt.Errorf("manifest error: %s", plainTyping(typedPatchPrefix.ReplaceAllString(text, ""))), true
	case status.Code == http.StatusInternalServerError && conversionPrefix.MatchString(text):
		return fmt.Errorf("manifest error: a value does not fit its field: %s", conversionPrefix.ReplaceAllString(text, "")), true
	case status.Code == http.StatusBadRequest:
		return fmt.Errorf("manifest error: %s", text), true
	}
	return nil, false
}

// WithoutSecrets takes the values of a Secret out of what the API server says of
// it: an error of typing quotes them.
func WithoutSecrets(object *unstructured.Unstructured, err error) error {
	status, answered := Status(err)
	if !manifest.IsSecret(object) || !answered {
		return err
	}
	status.Message = typedValue.ReplaceAllString(status.Message, "$1 "+manifest.Masked)
	for _, value := range manifest.SecretValues(object) {
		status.Message = strings.ReplaceAll(status.Message, value, manifest.Masked)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// immutableTexts are the ways in which validation says that a field may not be
// changed on a live object. There is no machine-readable reason for it.
func immutableTexts() []string {
	return []string{
		"field is immutable",
		"may not change once set",
		"is immutable after creation",
		"cannot change roleRef",
		"updates to statefulset spec for fields other than",
		"pod updates may not change fields other than",
		"updates to parameters are forbidden",
		"spec is immutable after creation",
		"updates to provisioner are forbidden",
		"updates to reclaimPolicy are forbidden",
	}
}

// ImmutableFields returns the fields whose change the API server refuses because
// they cannot be changed on a live object; none if that is not the error.
func ImmutableFields(err error) []string {
	status, ok := Status(err)
	if !ok || status.Reason != metav1.StatusReasonInvalid || status.Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		saysSo := func(text string) bool { return strings.Contains(cause.Message, text) }
		if slices.ContainsFunc(immutableTexts(), saysSo) && !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// Unreachable reports whether a request failed before the API server answered it.
func Unreachable(err error) bool {
	var transport *url.Error // what every client-go request fails with below HTTP
	return errors.As(err, &transport) && !errors.Is(err, context.Canceled)
}

// Status returns the Status with which the API server answered.
func Status(err error) (metav1.Status, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return metav1.Status{}, false
	}
	return status.Status(), true
}

// NotServed reports whether a path is unknown to the API server, as a custom
// Resource's is for a moment after its CRD was established. An object that does
// not exist is a different 404: it comes with the object's name.
func NotServed(err error) bool {
	status, ok := Status(err)
	return ok && status.Code == http.StatusNotFound && (status.Details == nil || status.Details.Name == "")
}

// DoesNotExist reports whether the API server says of one object that it does not exist,
// rather than not to know what was asked for.
func DoesNotExist(err error) bool { return apierrors.IsNotFound(err) && !NotServed(err) }

// Explain words an API server's refusal for the person who wrote the manifest.
// It adds the right that is missing, in the form that the repo's tier calls for.
func Explain(err error, group, resource string, tier manifest.Tier) error {
	switch {
	case apierrors.IsServiceUnavailable(err) && group != "":
		return fmt.Errorf("%w: is the server behind the API group %s up (kubectl get apiservices)?", err, group)
	case !lacksRight(err):
		return err
	case tier == manifest.Application:
		return fmt.Errorf("%w; an application repo has the rights of ClusterRole admin, to which this adds the kind:\n%s",
			err, aggregatedRole(group, resource))
	}
	return fmt.Errorf("%w; give kubesync's ServiceAccount that right, or take the object out of git", err)
}

// missingRight is how the API server says that who asks may not ask that.
var missingRight = regexp.MustCompile(`\bUser ".*" cannot \w+ resource`)

// lacksRight reports whether a right is all that a request lacked. Admission (Pod
// Security, a quota) and the rule that no one can grant more than he has forbid
// things too, which no right would change.
func lacksRight(err error) bool {
	status, answered := Status(err)
	return answered && apierrors.IsForbidden(err) && missingRight.MatchString(status.Message)
}

// aggregatedRole is the ClusterRole that lets application repos write a kind.
func aggregatedRole(group, resource string) string {
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kubesync-limited-%s
  labels:
    rbac.authorization.k8s.io/aggregate-to-admin: "true"
rules:
- apiGroups: [%q]
  resources: [%q]
  verbs: [get, list, watch, create, update, patch, delete]`, resource, group, resource)
}

// Expired reports whether the API server just does not keep what it was asked for
// any more: the answer to that is to ask anew.
func Expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// LacksNamespace reports whether a write failed because its Namespace is not there, or is
// being deleted.
func LacksNamespace(err error) bool {
	status, ok := Status(err)
	return ok && (status.Code == http.StatusNotFound && status.Details != nil && status.Details.Kind == "namespaces" ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause))
}

// ErrNotServed is a kind that discovery does not list any more.
var ErrNotServed = errors.New("the cluster does not serve the kind any more")

// LacksKind reports whether a write failed because its kind is not served any more, or
// is about to be: its CRD is being deleted. There is no machine-readable reason for
// the latter.
func LacksKind(err error) bool {
	status, ok := Status(err)
	return errors.Is(err, ErrNotServed) || NotServed(err) || ok && apierrors.IsForbidden(err) &&
		strings.HasSuffix(status.Message, "not allowed while custom resource definition is terminating")
}

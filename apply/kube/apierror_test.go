package kube

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/manifest"
)

// TestExplain has a hint exactly where following it would help.
func TestExplain(t *testing.T) {
	t.Parallel()
	noRight := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "crontabs"}, "nightly",
		errors.New(`User "kubesync-limited" cannot patch resource "crontabs" in API group "example.com" in the namespace "default"`))
	escalation := apierrors.NewForbidden(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, "all",
		errors.New(`user "kubesync-limited" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held`))
	insecure := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "loose", errors.New(`violates PodSecurity "baseline:latest": host namespaces`))
	for name, test := range map[string]struct {
		err  error
		tier manifest.Tier
		hint string // none if empty
	}{
		"application repo without a right":       {noRight, manifest.Application, "resources: [\"crontabs\"]"},
		"system repo without a right":            {noRight, manifest.System, "give kubesync's ServiceAccount that right"},
		"more rights than one has":               {escalation, manifest.Application, ""},
		"Pod Security":                           {insecure, manifest.Application, ""},
		"Pod Security, whatever the tier":        {insecure, manifest.System, ""},
		"something else that speaks of a cannot": {errors.New(`User "x" cannot patch resource`), manifest.System, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Explain(test.err, "example.com", "crontabs", test.tier)
			hint, found := strings.CutPrefix(got.Error(), test.err.Error())
			if !found || (test.hint == "") != (hint == "") || !strings.Contains(hint, test.hint) {
				t.Errorf("got %q, want the error and the hint %q", got, test.hint)
			}
			if !errors.Is(got, test.err) {
				t.Error("the API server's error is lost")
			}
		})
	}
}

// A kind that goes, or has gone, is no mistake of the manifest and no lack of rights.
func TestKindless(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"CRD being deleted": {apierrors.NewForbidden(widgets, "a", errors.New("create not allowed while custom resource definition is terminating")), true},
		"path not served":   {apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", schema.GroupResource{}, "", "404 page not found", 0, true), true},
		"not discovered":    {fmt.Errorf("corrected: %w", ErrNotServed), true},
		"no such object":    {apierrors.NewNotFound(widgets, "a"), false},
		"no right":          {apierrors.NewForbidden(widgets, "a", errors.New(`User "x" cannot patch resource "widgets"`)), false},
		"nothing":           {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := LacksKind(test.err); got != test.want {
				t.Errorf("kindless(%v) = %v, want %v", test.err, got, test.want)
			}
		})
	}
}

// What an admission webhook says of an object it may unsay, whatever code it chooses;
// what the API server itself says of a manifest stands.
func TestManifestError(t *testing.T) {
	t.Parallel()
	answer := func(code int32, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: text}}
	}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"wrong type": {answer(http.StatusInternalServerError, "failed to create typed patch object (default/a; v1, Kind=ConfigMap): .data: expected map, got &{[]}"), true},
		"no amount":  {answer(http.StatusInternalServerError, "failed to convert new object (default/a; /v1, Kind=Pod) to proper version: unable to convert unstructured object to /v1, Kind=Pod: quantities must match the regular expression '^([+-]?[0-9.]+)$'"), true},
		"conversion": {answer(http.StatusInternalServerError, "failed to convert new object (default/a; a.b/v1, Kind=C) to proper version: conversion webhook for a.b/v2, Kind=C failed: Post \"https://c\": connection refused"), false},
		"bad":        {answer(http.StatusBadRequest, "metadata.managedFields must be nil"), true},
		"denied":     {answer(http.StatusBadRequest, `admission webhook "house.example.com" denied the request: not today`), false},
		"down":       {answer(http.StatusInternalServerError, `Internal error occurred: failed calling webhook "house.example.com"`), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := ManifestError(test.err); got != test.want {
				t.Errorf("a mistake of the manifest: %t, want %t", got, test.want)
			}
		})
	}
}

// The API server quotes values in its errors of typing, and names types in Go's words.
// testTyping has it say these things.
func TestPlainTyping(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"null":             {".data: expected map, got &{<nil>}", ".data: must be a mapping, not null"},
		"null, typed":      {".spec.replicas: expected numeric (int or float), got <nil>", ".spec.replicas: must be a number, not null"},
		"a string":         {`.x: expected string, got &value.valueUnstructured{Value:"}"}`, ".x: must be a string, not a string"},
		"of a Secret":      {".type: expected string, got ***", ".type: must be a string, not this"},
		"a number, quoted": {".spec.paused: expected boolean, got &{1}", ".spec.paused: must be a boolean, not a single value"},
		"braces and lines": {"errors:\n  .a: expected map, got &{x}\n}\n  .b: expected list, got &{{y}}", "errors:\n  .a: must be a mapping, not a single value\n  .b: must be a list, not a single value"},
		"something else":   {".spec.nosuch: field not declared in schema", ".spec.nosuch: field not declared in schema"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := plainTyping(test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// Only the API server's word about the very object tells that it does not exist.
func TestDoesNotExist(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"the object":     {apierrors.NewNotFound(widgets, "a"), true},
		"the path":       {apierrors.NewGenericServerResponse(http.StatusNotFound, "DELETE", schema.GroupResource{}, "", "404 page not found", 0, true), false},
		"something else": {apierrors.NewConflict(widgets, "a", errors.New("changed")), false},
		"nothing":        {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := DoesNotExist(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

package health

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parse reads an object as a watch would return it.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(asJSON); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return &object
}

// expect compares a health with "state" or "state: part of the message".
func expect(t *testing.T, got *Health, want string) {
	t.Helper()
	state, message, _ := strings.Cut(want, ": ")
	if got == nil || got.State != State(state) || !strings.Contains(got.Message, message) || (message == "") != (got.Message == "") {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// The documents of controllers are judged as they say themselves.
func TestDocumentsOfControllers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no documents", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			object := parse(t, string(document))
			t.Run(object.GetKind()+"/"+object.GetName(), func(t *testing.T) {
				t.Parallel()
				expect(t, Of(object), object.GetAnnotations()["want"])
			})
		}
	}
}

func TestKindsThatKstatusReads(t *testing.T) {
	t.Parallel()
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 1, progressDeadlineSeconds: 600}, status: "
	for name, test := range map[string]struct{ object, want string }{
		"not observed yet":             {deployment + "{observedGeneration: 1}}", "in progress: Deployment generation is 2, but latest observed generation is 1"},
		"rolling out":                  {deployment + "{observedGeneration: 2, replicas: 1, updatedReplicas: 1}}", "in progress: Available: 0/1"},
		"gave up":                      {deployment + "{observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}", "failed: Progress deadline exceeded"},
		"rolled out":                   {deployment + "{observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}", "current"},
		"custom resource that waits":   {"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, generation: 3}, status: {observedGeneration: 3, conditions: [{type: Ready, status: 'False', message: no disk}]}}", "in progress: no disk"},
		"custom resource not observed": {"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, generation: 3}, status: {observedGeneration: 2}}", "in progress: generation"},
		"malformed":                    {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, status: {conditions: {}}}", "unknown: its status cannot be read"},
		"a string where kstatus wants a number": {
			"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, generation: 3}, status: {observedGeneration: '3'}}", "unknown: its status cannot be read: looking up status.observedGeneration",
		},
		"what kstatus falls over": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, containerStatuses: [one]}}", "unknown: its status cannot be read",
		},
		"a Rollout of another group": {"{apiVersion: example.com/v1, kind: Rollout, metadata: {name: a}, status: {phase: Degraded}}", "current"},
		"terminating":                {"{apiVersion: v1, kind: Pod, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/hold]}}", "terminating: waits for its finalizers: example.com/hold"},
		"terminating, whatever is waited for": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z', annotations: {kubesync.io/wait-for: 'jsonpath={.kind}', kubesync.io/fail-on: 'jsonpath={.kind}'}}}", "terminating",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, Of(parse(t, test.object)), test.want)
		})
	}
}

// Metadata says nothing of health, except that an object is being deleted.
func TestMetadata(t *testing.T) {
	t.Parallel()
	meta := &metav1.PartialObjectMetadata{}
	if got := Of(meta); got != nil {
		t.Errorf("metadata is %+v", got)
	}
	now := metav1.Now()
	meta.DeletionTimestamp = &now
	if got := Of(meta); got == nil || got.State != Terminating || got.Since != now.Time {
		t.Errorf("metadata of what is being deleted is %+v", got)
	}
}

package apply

import (
	"strings"
	"testing"

	"github.com/kubesync/kubesync/apply/observed"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 1, progressDeadlineSeconds: 600}, status: "
	for name, test := range map[string]struct {
		object  string
		state   observed.HealthState
		message string // part of it
	}{
		"not observed yet": {deployment + "{observedGeneration: 1}}", observed.InProgress, "Deployment generation is 2, but latest observed generation is 1"},
		"rolling out":      {deployment + "{observedGeneration: 2, replicas: 1, updatedReplicas: 1}}", observed.InProgress, "Available: 0/1"},
		"gave up": {
			deployment + "{observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			observed.HealthFailed, "Progress deadline exceeded",
		},
		"rolled out": {
			deployment + "{observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}",
			observed.Current, "",
		},
		"failed Job": {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: '2026-01-01T00:00:00Z', conditions: [{type: Failed, status: 'True'}]}}", observed.HealthFailed, "Job"},
		"custom resource that waits": {
			"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, generation: 3}, status: {observedGeneration: 3, conditions: [{type: Ready, status: 'False', message: no disk}]}}",
			observed.InProgress, "no disk",
		},
		"custom resource not observed": {"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, generation: 3}, status: {observedGeneration: 2}}", observed.InProgress, "generation"},
		"terminating": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/hold]}}",
			observed.Terminating, "waits for its finalizers: example.com/hold",
		},
		"malformed": {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, status: {conditions: {}}}", observed.HealthUnknown, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := observed.HealthOf(objectsOf(t, test.object)[0].Tree())
			if got == nil || got.State != test.state || !strings.Contains(got.Message, test.message) || test.message == "" && got.Message != "" {
				t.Errorf("got %+v, want %s: %s", got, test.state, test.message)
			}
		})
	}
}

// What an answer to a write says of an object is less than what is seen of it.
func TestHealthIsOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	if got := (observed.Member{}).AssessedHealth(true); got.State != observed.HealthUnknown {
		t.Errorf("a Deployment of which only metadata is known is %s", got.State)
	}
	if got := (observed.Member{}).AssessedHealth(false); got.State != observed.Current {
		t.Errorf("a ConfigMap that is there is %s", got.State)
	}
}

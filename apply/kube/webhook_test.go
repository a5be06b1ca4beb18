package kube

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWebhookBehind(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`admission webhook "house.example.com" denied the request: no`:                                                             "house.example.com",
		`Internal error occurred: failed calling webhook "a.b.c": failed to call webhook: Post "https://x": dial tcp: i/o timeout`: "a.b.c",
		`configmaps "x" is forbidden: admission webhook "x" denied`:                                                                "",
		``: "",
	} {
		if got := webhookBehind(&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: message}}); got != want {
			t.Errorf("%q is by %q, want %q", message, got, want)
		}
	}
}

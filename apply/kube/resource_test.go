package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubesync/kubesync/apply/kube/follow"
)

// TestFollowedEnds has watches end while more events are on their way, and tells of
// something else. Nothing goes on then: the test does not end before every goroutine has.
func TestFollowedEnds(t *testing.T) {
	t.Parallel()
	thing := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "11"}}
	for name, first := range map[string]watch.Event{
		"an error":       {Type: watch.Error, Object: &metav1.Status{Code: 500, Message: "failed"}},
		"something else": {Type: watch.Added, Object: &metav1.Status{Message: "no object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				things := Resource[*metav1.PartialObjectMetadataList]{
					list: func(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
						return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
					},
					watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						w := watch.NewFakeWithChanSize(2, false)
						w.Action(first.Type, first.Object)
						w.Action(watch.Added, thing)
						return w, nil
					},
					fits: typed[*metav1.PartialObjectMetadata],
				}
				lost := make(chan error, 1)
				store := follow.NewStore("things", func(o metav1.Object) (string, string) { return o.GetName(), "" }, func(string, metav1.Object) {})
				go follow.Follow(ctx, things, metav1.ListOptions{}, losing{store, lost})
				err := <-lost
				if err == nil || !strings.Contains(err.Error(), "watch: ") {
					t.Errorf("lost by %v", err)
				}
				cancel()
				time.Sleep(time.Minute)
			})
		})
	}
}

// losing is an handler that passes on why it was lost the first time.
type losing struct {
	follow.Handler
	lost chan error
}

// Lost implements follow.Handler.
func (l losing) Lost(err error) {
	if err == nil {
		err = errors.New("nothing")
	}
	select {
	case l.lost <- err:
	default:
	}
}

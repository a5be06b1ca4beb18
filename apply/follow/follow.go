package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// page is how many objects one list request returns.
	page = 500
	// watchAtLeast is the shortest time after which a watch is asked to end; it is
	// up to twice that, so that many watches do not end together.
	watchAtLeast = 5 * time.Minute
	// firstWait is the wait after a first failure. It doubles up to lastWait.
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
	// answerWait is how long the API server may take to begin a watch.
	answerWait = 4 * time.Second
	// tooShort is how long a watch lasts that the API server means to give.
	tooShort = time.Second
)

// Resource is what is followed.
type Resource interface {
	// List calls visit with the objects of one page and returns the page's list
	// metadata: where the next page continues, and the version of the list.
	List(ctx context.Context, options metav1.ListOptions, visit func(metav1.Object)) (metav1.ListInterface, error)
	// Watch begins to watch from the version in options on.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Audience hears what is followed, from one goroutine.
type Audience interface {
	// Relist says that a list begins: what Seen does not tell of before Current is
	// there no more.
	Relist()
	// Seen tells of an object that is there, was added, or has changed.
	Seen(metav1.Object)
	// Gone tells of an object that was deleted, or ceased to match the selector.
	Gone(metav1.Object)
	// Current says that everything up to now was told.
	Current()
	// Lost says that changes may be missed from now on, and why.
	Lost(error)
}

// Follow tells the audience of all objects of the resource that match the
// selectors in matching, and of all their changes, until ctx ends.
func Follow(ctx context.Context, resource Resource, matching metav1.ListOptions, audience Audience) {
	f := follower{resource: resource, matching: matching, audience: audience}
	for wait := firstWait; ctx.Err() == nil; {
		listed, err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if listed {
			wait = firstWait
		}
		audience.Lost(err)
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, lastWait)
	}
}

// follower is the state of one Follow.
type follower struct {
	resource Resource
	matching metav1.ListOptions
	audience Audience
	version  string // everything up to it was told
}

// round lists and then watches until something goes wrong, which it returns, and
// whether the list succeeded.
func (f *follower) round(ctx context.Context) (listed bool, err error) {
	if err := f.list(ctx); err != nil {
		return false, err
	}
	f.audience.Current()
	for err == nil {
		err = f.watch(ctx)
	}
	return true, err
}

// list tells of everything that there is.
func (f *follower) list(ctx context.Context) error {
	f.audience.Relist()
	options := f.matching
	options.Limit = page
	for {
		got, err := f.resource.List(ctx, options, f.audience.Seen)
		if err != nil {
			return err
		}
		// All pages are of the version that the first one names.
		f.version = got.GetResourceVersion()
		if got.GetContinue() == "" {
			return nil
		}
		options.Continue = got.GetContinue()
	}
}

// errEnded is a watch that ended as soon as it had begun.
var errEnded = errors.New("the API server ends the watch at once")

// errSilent is a watch that did not begin.
var errSilent = fmt.Errorf("the API server did not begin the watch within %s", answerWait)

// watch tells of changes until the watch ends without an error: the API server was
// asked to end it after a while, and what is between here and there may do so
// sooner.
func (f *follower) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seconds := int64((watchAtLeast + rand.N(watchAtLeast)) / time.Second)
	options := f.matching
	options.ResourceVersion, options.AllowWatchBookmarks, options.TimeoutSeconds = f.version, true, &seconds
	silent := time.AfterFunc(answerWait, func() { cancel(errSilent) })
	begun := time.Now()
	changes, err := f.resource.Watch(ctx, options)
	if silent.Stop(); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer changes.Stop()
	for {
		select {
		case event, open := <-changes.ResultChan():
			switch {
			case open:
				if err := f.tell(event); err != nil {
					return err
				}
			case time.Since(begun) < tooShort:
				return errEnded
			default:
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tell passes one event on.
func (f *follower) tell(event watch.Event) error {
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		return fmt.Errorf("watch: %w", err)
	}
	object, ok := event.Object.(metav1.Object)
	if !ok {
		return fmt.Errorf("watch: the API server sent a %T", event.Object)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		f.audience.Seen(object)
	case watch.Deleted:
		f.audience.Gone(object)
	case watch.Bookmark:
	default:
		return fmt.Errorf("watch: the API server sent an event of type %q", event.Type)
	}
	f.version = object.GetResourceVersion()
	return nil
}

// pause waits about d, or returns false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d/2 + rand.N(d)):
		return true
	case <-ctx.Done():
		return false
	}
}

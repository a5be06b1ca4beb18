package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubesync/kubesync/internal/backoff"
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
	// silence is how long a watch may bring nothing if its API server sends bookmarks,
	// which it does about once a minute.
	silence = 150 * time.Second
	// overdue is how long after its time a watch may end: some servers send no bookmarks.
	overdue = 30 * time.Second
	// steady is how long listing and watching have to go well for the next failure to
	// count as a first one: else a server that always fails a moment later is asked at once.
	steady = 10 * time.Second
)

// Resource is what is followed.
type Resource interface {
	// List calls visit with the objects of one page and returns the page's list
	// metadata: where the next page continues, and the version of the list.
	List(ctx context.Context, options metav1.ListOptions, visit func(metav1.Object)) (metav1.ListInterface, error)
	// Watch begins to watch from the version in options on.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	// Fits returns what shows that an object that a watch has brought is none of the
	// resource's; nil if nothing does.
	Fits(object runtime.Object) error
}

// Handler receives what is followed, from one goroutine.
type Handler interface {
	// Relist begins a list: what Seen does not report before Current is gone.
	Relist()
	// Seen reports an object that is there, was added, or has changed.
	Seen(metav1.Object)
	// Known returns the version in which an object of that name was last seen, "" if it
	// never was or is not kept.
	Known(metav1.Object) (version string)
	// Gone reports an object that was deleted, or ceased to match the selector.
	Gone(metav1.Object)
	// Current reports that all changes up to a version were reported.
	Current(version string)
	// Lost reports that changes may be missed from now on, and why.
	Lost(error)
}

// Follow reports all objects of the resource that match the selectors in matching, and
// all their changes, to the handler until ctx ends.
func Follow(ctx context.Context, resource Resource, matching metav1.ListOptions, handler Handler) {
	f := follower{resource: resource, matching: matching, handler: handler}
	for wait := firstWait; ctx.Err() == nil; {
		begun := time.Now()
		err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > steady {
			wait = firstWait
		}
		handler.Lost(err)
		backoff.Sleep(ctx, wait/2+rand.N(wait), nil)
		wait = min(2*wait, lastWait)
	}
}

// follower is the state of one Follow.
type follower struct {
	resource Resource
	matching metav1.ListOptions
	handler  Handler
	version  string // all changes up to it were reported
	marks    bool   // the API server sends bookmarks
	cut      bool   // the last watch ended before its time
}

// round lists and then watches until something goes wrong, which it returns.
func (f *follower) round(ctx context.Context) error {
	if err := f.list(ctx); err != nil {
		return err
	}
	f.handler.Current(f.version)
	f.cut = false
	for {
		if err := f.watch(ctx); err != nil {
			return err
		}
	}
}

// list reports everything that there is. All pages are of the version that the first
// one names.
func (f *follower) list(ctx context.Context) error {
	f.handler.Relist()
	options := f.matching
	options.Limit = page
	for {
		var objects []metav1.Object
		got, err := f.resource.List(ctx, options, func(o metav1.Object) { objects = append(objects, o) })
		if err != nil {
			return err
		}
		if err := CheckList(got, objects, options); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if err := f.goesOn(got.GetResourceVersion(), objects); err != nil {
			f.version = "" // what follows is of the earlier state
			return err
		}
		f.version = got.GetResourceVersion()
		for _, o := range objects {
			f.handler.Seen(o)
		}
		if got.GetContinue() == "" {
			return nil
		}
		options.Continue = got.GetContinue()
	}
}

// errEnded is a watch that ended as soon as it had begun.
var errEnded = errors.New("the API server ends the watch at once")

// errSilent is a question without an answer, mostly a watch that did not begin.
var errSilent = fmt.Errorf("the API server did not answer within %s", answerWait)

// errQuiet is a watch that brings nothing, as over a connection whose other end is gone.
var errQuiet = fmt.Errorf("the watch brought nothing for %s, not even the bookmark that the API server sends every minute", silence)

// errOverdue is a watch that goes on although it was asked to end.
var errOverdue = errors.New("the watch did not end when it should: its other end does not respond to the request")

// probe looks at a page of the objects after a watch was cut: the API server may have
// been restored from a backup meanwhile. It accepts a watch from a version that it has not
// reached yet, and sends nothing; and from one that it has reached again, and leaves out
// what it has undone.
func (f *follower) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWait, errSilent)
	defer cancel()
	options := f.matching
	options.Limit = page
	var objects []metav1.Object
	got, err := f.resource.List(ctx, options, func(o metav1.Object) { objects = append(objects, o) })
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return f.goesOn(got.GetResourceVersion(), objects)
}

// ErrWentBack is an API server that has gone back to an earlier state, as it does when
// a backup of etcd is restored. Then nothing that is known of its objects holds: versions are given out a second time, and fields have other values under the
// same owner.
var ErrWentBack = errors.New("the API server has gone back to an earlier state, as after the restore of a backup")

// goesOn returns ErrWentBack if a list shows an earlier state: a list is never older than
// what was seen before it was asked for, and no object on it is older than what was seen
// of it, unless that was seen after the list was made.
func (f *follower) goesOn(version string, objects []metav1.Object) error {
	if f.version == "" {
		return nil
	}
	if older(version, f.version) {
		return fmt.Errorf("%w: it is at version %s, and was at %s", ErrWentBack, version, f.version)
	}
	for _, o := range objects {
		known := f.handler.Known(o)
		if known != "" && older(o.GetResourceVersion(), known) && !older(version, known) {
			return fmt.Errorf("%w: at version %s it has %s/%s in version %s, and had it in %s",
				ErrWentBack, version, o.GetNamespace(), o.GetName(), o.GetResourceVersion(), known)
		}
	}
	return nil
}

// watch reports changes until the watch ends without an error: the API server was
// asked to end it after a while, and what is between here and there may do so
// sooner.
func (f *follower) watch(ctx context.Context) error {
	if f.cut {
		if err := f.probe(ctx); err != nil {
			return err
		}
	}
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
	late := time.AfterFunc(time.Duration(seconds)*time.Second+overdue, func() { cancel(errOverdue) })
	defer late.Stop()
	quiet := time.AfterFunc(silence, func() { cancel(errQuiet) })
	defer quiet.Stop()
	if !f.marks {
		quiet.Stop()
	}
	for {
		select {
		case event, open := <-changes.ResultChan():
			switch {
			case open:
				if err := f.report(event); err != nil {
					return err
				}
				if f.marks {
					quiet.Reset(silence)
				}
			case context.Cause(ctx) != nil:
				return context.Cause(ctx)
			case time.Since(begun) < tooShort:
				return errEnded
			default:
				f.cut = time.Since(begun) < time.Duration(seconds)*time.Second-tooShort
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// report passes one event on.
func (f *follower) report(event watch.Event) error {
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		if err.Error() == "" {
			return errors.New("watch: the API server sent an error without a message")
		}
		return fmt.Errorf("watch: %w", err)
	}
	object, ok := event.Object.(metav1.Object)
	if !ok {
		return fmt.Errorf("watch: the API server sent a %T", event.Object)
	}
	if event.Type != watch.Bookmark {
		if err := f.resource.Fits(event.Object); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	if err := f.check(event.Type, object); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		f.handler.Seen(object)
	case watch.Deleted:
		f.handler.Gone(object)
	case watch.Bookmark:
		f.marks = true
	default:
		return fmt.Errorf("watch: the API server sent an event of type %q", event.Type)
	}
	f.version = object.GetResourceVersion()
	return nil
}

// check returns what is wrong with an event. Versions on a watch only ever grow: if one
// does not, events are lost, or the API server has gone back to an earlier state.
func (f *follower) check(event watch.EventType, object metav1.Object) error {
	if version := object.GetResourceVersion(); older(version, f.version) {
		return fmt.Errorf("the API server sent version %s after version %s", version, f.version)
	}
	if event == watch.Bookmark {
		return checkVersion(object.GetResourceVersion())
	}
	return check(object, f.matching)
}

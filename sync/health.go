package sync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/backoff"
	"github.com/kubesync/kubesync/repo"
)

const (
	// healthEvery is the pause between two checks of the objects' health.
	healthEvery = 500 * time.Millisecond
	// listedNotReady is how many objects an error names.
	listedNotReady = 5
)

// Health is the result of waiting for a revision to become healthy.
type Health struct {
	NotReady []apply.NotReady // the objects that are not current
	// Waiting says that the wait was interrupted to look for a newer revision, and
	// goes on at the next sync.
	Waiting bool
	Err     error // why health is unknown
}

// Problem words why the objects are not healthy, nil if they are.
func (h Health) Problem() error {
	switch {
	case h.Err != nil:
		return h.Err
	case len(h.NotReady) == 0:
		return nil
	}
	var texts []string
	for i, notReady := range h.NotReady {
		if i == listedNotReady {
			texts = append(texts, fmt.Sprintf("and %d more", len(h.NotReady)-i))
			break
		}
		texts = append(texts, notReady.String())
	}
	return fmt.Errorf("not healthy: %s", strings.Join(texts, "; "))
}

// awaitHealth waits until every object of a revision that was applied is current or has
// failed, or the time of the revision is over. It returns early when there is a reason to
// sync or it is time to poll git, unless git is polled only once.
func (l *Loop) awaitHealth(ctx context.Context, applier applier, revision repo.Revision) Health {
	if l.waitsFor != revision.ID {
		l.waitsFor, l.waitUntil, l.unreadable = revision.ID, time.Now().Add(l.repo.Wait), map[string]bool{}
	}
	poll := time.Now().Add(backoff.Jitter(l.repo.Interval))
	var of []manifest.ID
	for {
		notReady, err := applier.NotReady(ctx, of)
		l.reportUnreadable(revision, notReady)
		now := time.Now()
		switch {
		case err != nil:
			return Health{Err: fmt.Errorf("cannot check health: %w", err)}
		case !progressing(notReady), !now.Before(l.waitUntil):
			return Health{NotReady: notReady}
		case !l.only && (len(l.wake) > 0 || !now.Before(poll)):
			return Health{NotReady: notReady, Waiting: true}
		}
		of = of[:0]
		for _, one := range notReady {
			of = append(of, one.ID)
		}
		if !backoff.Sleep(ctx, min(healthEvery, time.Until(l.waitUntil)), nil) {
			return Health{NotReady: notReady, Err: context.Cause(ctx)}
		}
	}
}

// reportUnreadable reports what cannot be judged, each once for a reason: the object may need a
// person, who has all the time of the wait then.
func (l *Loop) reportUnreadable(revision repo.Revision, notReady []apply.NotReady) {
	for _, object := range notReady {
		if !object.Unreadable || l.unreadable[object.String()] {
			continue
		}
		l.unreadable[object.String()] = true
		l.observer.Unreadable(Unreadable{Repo: l.repo.Name, Revision: revision, Object: object})
	}
}

// progressing reports whether an object may still become ready.
func progressing(notReady []apply.NotReady) bool {
	return slices.ContainsFunc(notReady, func(u apply.NotReady) bool { return u.State != health.Failed })
}

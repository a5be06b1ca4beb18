package sync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply"
)

const (
	// healthEvery is the pause between two looks at how the objects are.
	healthEvery = 500 * time.Millisecond
	// listedUnwell is how many objects an error names.
	listedUnwell = 5
)

// Health is what waiting for a revision to become healthy came to.
type Health struct {
	Unwell []apply.Unwell // the objects that are not current
	// Waiting says that the wait was interrupted to look for a newer revision, and
	// goes on at the next sync.
	Waiting bool
	Err     error // why it cannot be told
}

// Problem words why the objects are not healthy, nil if they are.
func (h Health) Problem() error {
	switch {
	case h.Err != nil:
		return h.Err
	case len(h.Unwell) == 0:
		return nil
	}
	var texts []string
	for i, unwell := range h.Unwell {
		if i == listedUnwell {
			texts = append(texts, fmt.Sprintf("and %d more", len(h.Unwell)-i))
			break
		}
		texts = append(texts, unwell.String())
	}
	return fmt.Errorf("not healthy: %s", strings.Join(texts, "; "))
}

// awaitHealth waits until all objects of a revision that was applied are current, or
// none of the others is still on its way. It gives up when the revision's time is over,
// and makes way as soon as there is a reason to sync or it is time to look for a newer
// revision, unless there is to be no other sync.
func (l *Loop) awaitHealth(ctx context.Context, applier applier, revision string) Health {
	if l.waitsFor != revision {
		l.waitsFor, l.waitUntil = revision, time.Now().Add(l.repo.Wait)
	}
	poll := time.Now().Add(jitter(l.repo.Interval))
	var of []apply.ID
	for {
		unwell, err := applier.Unwell(ctx, of)
		now := time.Now()
		switch {
		case err != nil:
			return Health{Err: fmt.Errorf("health is not known: %w", err)}
		case !onTheirWay(unwell), !now.Before(l.waitUntil):
			return Health{Unwell: unwell}
		case !l.only && (len(l.wake) > 0 || !now.Before(poll)):
			return Health{Unwell: unwell, Waiting: true}
		}
		of = of[:0]
		for _, one := range unwell {
			of = append(of, one.ID)
		}
		if !sleep(ctx, min(healthEvery, time.Until(l.waitUntil)), nil) {
			return Health{Unwell: unwell, Err: context.Cause(ctx)}
		}
	}
}

// onTheirWay tells whether waiting for the objects may be of use.
func onTheirWay(unwell []apply.Unwell) bool {
	return slices.ContainsFunc(unwell, func(u apply.Unwell) bool { return u.State != apply.HealthFailed })
}

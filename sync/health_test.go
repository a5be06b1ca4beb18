package sync

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
)

// notReady is an object in a state.
func notReady(state health.State) []apply.NotReady {
	return []apply.NotReady{{
		ID:     manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "web"},
		Health: health.Health{State: state, Message: "waits"},
	}}
}

func TestTheResultWaitsForHealth(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	tests := map[string]struct {
		looks func(elapsed time.Duration) ([]apply.NotReady, error)
		state State
		took  time.Duration // at least, and less than a second more
	}{
		"healthy at once": {func(time.Duration) ([]apply.NotReady, error) { return nil, nil }, Synced, 0},
		"healthy in time": {func(elapsed time.Duration) ([]apply.NotReady, error) {
			if elapsed < 20*time.Second {
				return notReady(health.InProgress), nil
			}
			return nil, nil
		}, Synced, 20 * time.Second},
		"not healthy in time":            {func(time.Duration) ([]apply.NotReady, error) { return notReady(health.InProgress), nil }, Unhealthy, time.Minute},
		"failed, for which no one waits": {func(time.Duration) ([]apply.NotReady, error) { return notReady(health.Failed), nil }, Unhealthy, 0},
		"not known":                      {func(time.Duration) ([]apply.NotReady, error) { return nil, down }, Unhealthy, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				s := &stages{notReady: func([]manifest.ID) ([]apply.NotReady, error) { return test.looks(time.Since(started)) }}
				r := s.repo("shop", manifest.System)
				r.Wait = time.Minute
				report := newLoop(r, &recorder{}, quiet()).sync(t.Context())
				if report.State() != test.state || report.InSync() != (test.state == Synced) {
					t.Errorf("state %s (%v), want %s", report.State(), report.Problem(), test.state)
				}
				if took := time.Since(started); took < test.took || took > test.took+time.Second {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				if problem := report.Problem(); test.state == Unhealthy && (problem == nil || !strings.Contains(problem.Error(), "waits") && !errors.Is(problem, down)) {
					t.Errorf("the problem is reported as %v", problem)
				}
			})
		})
	}
}

// Whatever a revision waits for, a newer one goes before it.
func TestWaitingForHealthHoldsUpNoRevision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen, started := &recorder{}, time.Now()
		s := &stages{notReady: func([]manifest.ID) ([]apply.NotReady, error) { return notReady(health.InProgress), nil }}
		s.resolve = func(context.Context) (repo.Revision, error) {
			if time.Since(started) < time.Minute {
				return repo.Revision{ID: firstCommit}, nil
			}
			return repo.Revision{ID: secondCommit}, nil
		}
		r := s.repo("shop", manifest.System)
		r.Interval, r.Wait = 10*time.Second, 3*time.Minute
		loop := newLoop(r, seen, quiet())
		go loop.Run(ctx)
		time.Sleep(90 * time.Second)
		reports := seen.of("shop")
		last := reports[len(reports)-1]
		if last.Revision.ID != secondCommit || last.State() != Progressing || last.Failures != 0 {
			t.Errorf("after 90 s the last of %d syncs is of %s, %s; want the second revision, progressing", len(reports), last.Revision.ID, last.State())
		}
		loop.Trigger() // what wakes the loop goes before the wait, too
		before := len(reports)
		time.Sleep(2 * time.Second)
		if len(seen.of("shop")) == before {
			t.Error("a trigger has to wait for health")
		}
		time.Sleep(3 * time.Minute)
		reports = seen.of("shop")
		if last = reports[len(reports)-1]; last.State() != Unhealthy || last.Failures == 0 {
			t.Errorf("when its time was over the second revision is %s", last.State())
		}
		cancel()
		synctest.Wait()
	})
}

// A pass with no other sync to follow waits its whole time.
func TestOnceWaitsForHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		s := &stages{notReady: func([]manifest.ID) ([]apply.NotReady, error) { return notReady(health.InProgress), nil }}
		r := s.repo("shop", manifest.System)
		r.Wait = 20 * time.Minute
		if Once(t.Context(), []Repo{r}, OnceOptions{Observer: &recorder{}, Log: quiet()}).InSync {
			t.Error("a repo that is not healthy counts as in sync")
		}
		if took := time.Since(started); took < r.Wait {
			t.Errorf("it waited %s", took)
		}
	})
}

// What cannot be judged is reported while it is waited for: once, and again for another reason
// or another revision.
func TestUnreadableIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen, started := &recorder{}, time.Now()
		s := &stages{notReady: func([]manifest.ID) ([]apply.NotReady, error) {
			unclear := notReady(health.Unknown)
			unclear[0].Unreadable = true
			if time.Since(started) > 10*time.Second {
				unclear[0].Message = "another reason"
			}
			unseen := notReady(health.Unknown)
			unseen[0].ID.Name = "unseen"
			return append(unclear, unseen...), nil
		}}
		s.resolve = func(context.Context) (repo.Revision, error) {
			if time.Since(started) < time.Minute {
				return repo.Revision{ID: firstCommit}, nil
			}
			return repo.Revision{ID: secondCommit}, nil
		}
		r := s.repo("shop", manifest.System)
		r.Wait, r.Interval = 20*time.Second, time.Hour
		loop := newLoop(r, seen, quiet())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for time.Since(started) < 2*time.Minute {
				loop.sync(t.Context())
				time.Sleep(15 * time.Second)
			}
		}()
		time.Sleep(5 * time.Second) // of the 20 that the first sync waits
		seen.mu.Lock()
		atOnce := len(seen.unclear)
		seen.mu.Unlock()
		<-done
		var texts []string
		for _, u := range seen.unclear {
			texts = append(texts, u.Revision.Short()+" "+u.Object.String())
		}
		want := []string{
			firstCommit[:7] + " Deployment/default/web is unknown: waits",
			firstCommit[:7] + " Deployment/default/web is unknown: another reason",
			secondCommit[:7] + " Deployment/default/web is unknown: another reason",
		}
		if !slices.Equal(texts, want) {
			t.Errorf("got %q, want %q", texts, want)
		}
		if atOnce != 1 {
			t.Errorf("%d were reported while the first sync waited", atOnce)
		}
	})
}

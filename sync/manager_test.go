package sync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

// list is a list of repos that tests change.
type list struct {
	mu    sync.Mutex
	repos []Repo
	err   error
}

func (l *list) Read(context.Context) ([]Repo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.repos), l.err
}

func (l *list) set(err error, repos ...Repo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.repos, l.err = repos, err
}

// manage runs a manager over a list in a bubble of fake time.
func manage(t *testing.T, repos *list, during func(seen *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen := &recorder{}
		manager := NewManager(ManagerOptions{List: repos, Interval: 5 * time.Minute, Observer: seen, Log: quiet()}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			manager.Run(ctx)
		}()
		during(seen)
		cancel()
		<-done
	})
}

func TestApplicationReposWaitForTheFirstSyncOfSystemRepos(t *testing.T) {
	t.Parallel()
	slow := func(d time.Duration, err error) func(context.Context) (repo.Revision, error) {
		return func(context.Context) (repo.Revision, error) {
			time.Sleep(d)
			return repo.Revision{ID: firstCommit}, err
		}
	}
	repos := &list{}
	repos.set(nil,
		(&stages{}).repo("app", manifest.Application),
		(&stages{resolve: slow(time.Minute, nil)}).repo("cni", manifest.System),
		(&stages{resolve: slow(2*time.Minute, errors.New("no route"))}).repo("dns", manifest.System))
	manage(t, repos, func(seen *recorder) {
		time.Sleep(119 * time.Second)
		if got := len(seen.of("app")); got != 0 {
			t.Errorf("the application repo was synced %d times before the last system repo", got)
		}
		time.Sleep(2 * time.Second)
		if got := len(seen.of("app")); got != 1 {
			t.Errorf("the application repo was synced %d times after the system repos, want once", got)
		}
	})
}

func TestARepoThatHangsDelaysNoOther(t *testing.T) {
	t.Parallel()
	repos := &list{}
	repos.set(nil,
		(&stages{resolve: blockingResolve()}).repo("stuck", manifest.Application),
		(&stages{}).repo("fine", manifest.Application))
	manage(t, repos, func(seen *recorder) {
		time.Sleep(time.Hour)
		if got := len(seen.of("fine")); got < 10 {
			t.Errorf("the other repo was synced %d times in an hour", got)
		}
	})
}

func TestReposComeAndGoWithTheList(t *testing.T) {
	t.Parallel()
	stay, leave, come := &stages{}, &stages{}, &stages{}
	repos := &list{}
	repos.set(nil, stay.repo("stay", manifest.Application), leave.repo("leave", manifest.Application))
	manage(t, repos, func(seen *recorder) {
		time.Sleep(time.Minute)
		repos.set(nil, stay.repo("stay", manifest.Application), come.repo("come", manifest.Application))
		time.Sleep(6 * time.Minute) // an interval and its jitter
		if len(seen.of("come")) == 0 {
			t.Error("the repo that appeared was not started")
		}
		if _, closed := leave.times(); !slices.Equal(seen.left(), []string{"leave"}) || closed != 1 {
			t.Errorf("unlisted %v, closed %d times; want the repo that left", seen.left(), closed)
		}
		synced := len(seen.of("leave"))
		time.Sleep(time.Hour)
		if got := len(seen.of("leave")); got != synced {
			t.Errorf("the repo that left was synced %d times more", got-synced)
		}
		if opened, _ := stay.times(); opened != 1 {
			t.Errorf("the repo that stayed was started %d times", opened)
		}
	})
}

func TestAChangedSettingRestartsOnlyThatLoop(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	inFlight, most := 0, 0
	changed := &stages{resolve: func(ctx context.Context) (repo.Revision, error) {
		mu.Lock()
		inFlight++
		most = max(most, inFlight)
		mu.Unlock()
		<-ctx.Done()
		time.Sleep(time.Second) // it takes a while to stop
		mu.Lock()
		inFlight--
		mu.Unlock()
		return repo.Revision{}, ctx.Err()
	}}
	same := &stages{}
	before := changed.repo("changed", manifest.Application)
	before.Settings = []string{"YMLDIR=a"}
	after := before
	after.Settings = []string{"YMLDIR=b"}
	repos := &list{}
	repos.set(nil, before, same.repo("same", manifest.Application))
	manage(t, repos, func(seen *recorder) {
		time.Sleep(time.Minute)
		repos.set(nil, after, same.repo("same", manifest.Application))
		time.Sleep(6 * time.Minute)
		opened, closed := changed.times()
		if others, _ := same.times(); opened != 2 || closed != 1 || others != 1 {
			t.Errorf("opened %d and closed %d times, the other opened %d times; want 2, 1, 1", opened, closed, others)
		}
		if left := seen.left(); len(left) != 0 {
			t.Errorf("unlisted %v", left)
		}
	})
	if most != 1 {
		t.Errorf("%d loops of one repo at a time", most)
	}
}

// A CMD that is asked to end has its time, in which the list may be read again.
func TestARepoThatIsBackWaitsForItsOldLoop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stays         bool
		opened, times int
	}{
		"and stays":       {true, 2, 0},
		"and leaves anew": {false, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repos := &list{}
			manage(t, repos, func(seen *recorder) {
				end := make(chan struct{})
				stubborn := &stages{transform: func(ctx context.Context, _ transform.Input) (transform.Result, error) {
					<-end
					return transform.Result{}, ctx.Err()
				}}
				site := stubborn.repo("site", manifest.Application)
				repos.set(nil, site)
				time.Sleep(6 * time.Minute)
				repos.set(nil)
				time.Sleep(6 * time.Minute)
				repos.set(nil, site)
				time.Sleep(6 * time.Minute)
				if opened, closed := stubborn.times(); opened != 1 || closed != 0 {
					t.Errorf("opened %d and closed %d times while the first loop still ran", opened, closed)
				}
				if !test.stays {
					repos.set(nil)
					time.Sleep(6 * time.Minute)
				}
				close(end)
				time.Sleep(time.Second)
				if opened, closed := stubborn.times(); opened != test.opened || closed != 1 || len(seen.left()) != test.times {
					t.Errorf("opened %d and closed %d times, unlisted %v; want %d, 1, and %d times", opened, closed, seen.left(), test.opened, test.times)
				}
			})
		})
	}
}

func TestABrokenListKeepsTheLastGoodOne(t *testing.T) {
	t.Parallel()
	only := &stages{}
	repos := &list{}
	repos.set(nil, only.repo("only", manifest.Application))
	manage(t, repos, func(seen *recorder) {
		time.Sleep(time.Minute)
		repos.set(errors.New("line 3: not JSON"))
		time.Sleep(time.Hour)
		opened, _ := only.times()
		if len(seen.of("only")) < 10 || len(seen.left()) != 0 || opened != 1 {
			t.Errorf("%d syncs, unlisted %v, opened %d times; want the repo to go on", len(seen.of("only")), seen.left(), opened)
		}
	})
}

// slowList is a list that can be read once its channel is closed.
type slowList chan struct{}

func (l slowList) Read(context.Context) ([]Repo, error) {
	<-l
	return nil, nil
}

// What a standby knows of the list may be days old.
func TestHousekeepingWaitsForTheList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		repos, kept := make(slowList), 0
		manager := NewManager(ManagerOptions{
			List: repos, Interval: time.Minute, Observer: &recorder{}, Log: quiet(),
			Housekeeping: func(context.Context) error { kept++; return nil },
		}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			manager.Run(ctx)
		}()
		synctest.Wait()
		if kept != 0 {
			t.Error("kept house before the list was read")
		}
		close(repos)
		synctest.Wait()
		if kept != 1 {
			t.Errorf("kept house %d times when the list had been read, want once", kept)
		}
		cancel()
		<-done
	})
}

// A plan that is under way when the process shall stop may begin to watch one more kind.
func TestTheClusterIsWatchedUntilAllLoopsHaveReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		planning := &stages{plan: func(ctx context.Context) (apply.Plan, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // it takes a while to stop
			return apply.Plan{}, ctx.Err()
		}}
		repos, watched := &list{}, true
		repos.set(nil, planning.repo("site", manifest.Application))
		manager := NewManager(ManagerOptions{
			List: repos, Interval: time.Minute, Observer: &recorder{}, Log: quiet(),
			Watch: func(ctx context.Context) func() {
				return func() {
					<-ctx.Done()
					if _, closed := planning.times(); closed != 1 {
						t.Error("the watching ends while a loop still runs")
					}
					watched = false
				}
			},
		}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			manager.Run(ctx)
		}()
		synctest.Wait()
		cancel()
		<-done
		if watched {
			t.Error("no one waited for the end of the watching")
		}
	})
}

func TestHousekeepingGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		kept := 0
		manager := NewManager(ManagerOptions{
			List: &list{}, Interval: time.Minute, Observer: &recorder{}, Log: quiet(),
			Housekeeping: func(context.Context) error { kept++; return errors.New("forbidden") },
		}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			manager.Run(ctx)
		}()
		time.Sleep(10 * time.Minute)
		cancel()
		<-done
		if kept < 11 || kept > 16 {
			t.Errorf("kept house %d times in 10 intervals", kept)
		}
	})
}

func TestHousekeepingThatFailedIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		kept := 0
		manager := NewManager(ManagerOptions{
			List: &list{}, Interval: time.Hour, Observer: &recorder{}, Log: quiet(),
			Housekeeping: func(context.Context) error {
				if kept++; kept <= 2 {
					return errors.New("the API server is busy")
				}
				return nil
			},
		}, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			manager.Run(ctx)
		}()
		time.Sleep(30 * time.Minute)
		cancel()
		<-done
		if kept != 3 {
			t.Errorf("kept house %d times in half an interval, want twice in vain and once well", kept)
		}
	})
}

func TestAManagerThatLedBeforeStartsEveryLoopFromScratch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stages{}
		repos := &list{}
		repos.set(nil, s.repo("shop", manifest.System))
		manager := NewManager(ManagerOptions{List: repos, Interval: time.Minute, Observer: &recorder{}, Log: quiet()}, nil)
		for term := 1; term <= 2; term++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			manager.Run(ctx)
			cancel()
			if s.opened != term || s.closed != term {
				t.Errorf("after term %d opened %d times, closed %d times", term, s.opened, s.closed)
			}
		}
	})
}

func TestPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		repos, seen := &list{}, &recorder{}
		a, b, c := (&stages{}).repo("a", manifest.System), (&stages{}).repo("b", manifest.System), (&stages{}).repo("c", manifest.System)
		repos.set(nil, a, b)
		manager := NewManager(ManagerOptions{List: repos, Interval: 5 * time.Minute, Observer: seen, Log: quiet()}, nil)
		if polled := manager.Poll("a", "b"); polled != 0 {
			t.Errorf("%d repos are polled before anything runs", polled)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			manager.Run(ctx)
		}()
		expect := func(when string, a, b, c int) {
			t.Helper()
			synctest.Wait()
			for name, want := range map[string]int{"a": a, "b": b, "c": c} {
				if got := len(seen.of(name)); got != want {
					t.Errorf("%s: %s was synced %d times, want %d", when, name, got, want)
				}
			}
		}
		expect("at first", 1, 1, 0)
		if polled := manager.Poll("b", "none"); polled != 1 {
			t.Errorf("%d repos are polled, want 1", polled)
		}
		expect("one", 1, 2, 0)
		repos.set(nil, a, b, c)
		if polled := manager.Poll(); polled != 2 {
			t.Errorf("%d repos are polled, want 2", polled)
		}
		expect("all", 2, 3, 1)
		cancel()
		<-done
		if polled := manager.Poll(); polled != 0 {
			t.Errorf("%d repos are polled after the end", polled)
		}
	})
}

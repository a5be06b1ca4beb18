package main

import (
	"context"
	"fmt"
	"time"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/daemon"
)

// watched is a daemon in sync that is looked at, with its cluster and repo.
type watched struct {
	*running
	site *site
	repo string
	mark int64
}

// steady brings a set of mixed objects into a cluster and returns the daemon once
// it and the cluster have come to rest.
func (l *lab) steady(ctx context.Context, repo string, interval time.Duration) (_ *watched, err error) {
	objects, url, err := l.newSet(repo, mixed, l.mixed)
	if err != nil {
		return nil, err
	}
	w := &watched{repo: repo}
	if w.site, err = l.newSite(ctx, true); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.end()
		}
	}()
	if w.running, err = l.start(w.site.on(url), daemon.Env{"INTERVAL": interval.String()}); err != nil {
		return nil, err
	}
	if _, err := w.synced(ctx, 1, ""); err != nil {
		return nil, err
	}
	if err := w.site.rest(ctx); err != nil {
		return nil, err
	}
	// What a first sync leaves to be done, at the next polls for example, is done.
	if err := testlab.Sleep(ctx, min(2*interval, 30*time.Second)); err != nil {
		return nil, err
	}
	if _, err := w.site.versions(ctx, objects); err != nil {
		return nil, err
	}
	l.git.Log.Reset()
	w.mark, err = w.site.mark(ctx)
	return w, err
}

// end kills what runs.
func (w *watched) end() {
	if w.running != nil {
		w.Kill()
	}
	_ = w.site.Close() // its directory goes with the lab's
}

// asked says what the daemon asked API server and git server since it came to rest.
func (w *watched) asked(ctx context.Context, l *lab, period time.Duration) ([]line, error) {
	requests, err := w.site.requests(ctx, serviceAccount("kubesync"), w.mark)
	if err != nil {
		return nil, err
	}
	polls, err := pollsOf(l.git.Log.Requests(), w.repo)
	if err != nil {
		return nil, err
	}
	more := work(requests)
	return []line{
		exactly(fmt.Sprintf("requests to the API server in %s, without watches and Lease", period), len(more), 0, examples(more)),
		polls.line(),
	}, nil
}

// sameRevision measures what polls cost that find nothing new.
func sameRevision(ctx context.Context, l *lab) ([]line, error) {
	w, err := l.steady(ctx, "again", l.poll)
	if err != nil {
		return nil, err
	}
	defer w.end()
	if err := testlab.Sleep(ctx, l.window); err != nil {
		return nil, err
	}
	lines, err := w.asked(ctx, l, l.window)
	if err != nil {
		return nil, err
	}
	return lines, w.Stop(ctx)
}

// idleInterval lets some polls fall into the time for which a daemon is looked at:
// at full size a poll a minute, five times as many as by default.
func (l *lab) idleInterval() time.Duration { return l.idle / 5 }

// idle measures what a daemon takes of the machine while nothing happens.
func idle(ctx context.Context, l *lab) ([]line, error) {
	w, err := l.steady(ctx, "idle", l.idleInterval())
	if err != nil {
		return nil, err
	}
	defer w.end()
	var most bytesize
	var last memory
	share, used, err := cpuShare(w.PID, func() (err error) {
		for start := time.Now(); time.Since(start) < l.idle; most = max(most, last.now) {
			if err := testlab.Sleep(ctx, min(time.Second, l.idle-time.Since(start))); err != nil {
				return err
			}
			if last, err = memoryOf(w.PID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rss := within("memory at the end", last.now, 50*megabyte, bytesize.String)
	rss.ours += fmt.Sprintf(" (at most %s; peak, in the first sync: %s)", most, last.peak)
	cpu := within("CPU, of one core", share, 0.2, percent)
	cpu.ours += fmt.Sprintf(" (%s in %s)", used, l.idle)
	lines, err := w.asked(ctx, l, l.idle)
	if err != nil {
		return nil, err
	}
	return append([]line{rss, cpu}, lines...), w.Stop(ctx)
}

// cpuShare returns what a process takes of one core, in per cent, while something is done, and
// the time of a processor that this is.
func cpuShare(pid int, while func() error) (share float64, used time.Duration, err error) {
	before, err := cpuTime(pid)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := while(); err != nil {
		return 0, 0, err
	}
	after, err := cpuTime(pid)
	used = after - before
	return 100 * used.Seconds() / time.Since(start).Seconds(), used, err
}

// percent words a share.
func percent(share float64) string { return fmt.Sprintf("%.2g %%", share) }

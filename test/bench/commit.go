package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/yaml"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// follower is a daemon, a cluster and a repo to which commits are made.
type follower struct {
	*running
	site    *site
	repo    *gitserver.Repo
	objects set
	picks   *generator

	times  series // from the fetch to the object live
	whole  series // from the push to the object live, the wait for the next poll included
	writes int    // at most
	wrote  []request
}

// follow starts a daemon and waits until it is in sync.
func (l *lab) follow(ctx context.Context, size int) (_ *follower, err error) {
	f := &follower{picks: newGenerator(l.seed)}
	if f.objects, err = configMaps(l.seed, size); err != nil {
		return nil, err
	}
	if f.repo, err = l.git.CreateRepo(fmt.Sprintf("commit-%d", size)); err != nil {
		return nil, err
	}
	first, err := f.repo.Commit("Start", f.objects.files)
	if err != nil {
		return nil, err
	}
	if f.site, err = l.newSite(ctx, false); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.end()
		}
	}()
	if f.running, err = l.start(f.site.on(l.git.URL(f.repo.Name)), daemon.Env{"INTERVAL": "1s"}); err != nil {
		return nil, err
	}
	_, err = f.synced(ctx, 1, first)
	return f, err
}

func (f *follower) end() {
	if f.running != nil {
		f.Kill()
	}
	_ = f.site.Close() // its directory goes with the lab's
}

// commit changes one file and follows the change until it is live and logged.
func (f *follower) commit(ctx context.Context, l *lab) error {
	changed := f.picks.choose(f.objects, 1)[0].DeepCopy()
	greeting := f.picks.word()
	if err := unstructured.SetNestedField(changed.Object, greeting, "data", "greeting"); err != nil {
		return fmt.Errorf("changing a manifest: %w", err)
	}
	content, err := yaml.Marshal(changed.Object)
	if err != nil {
		return fmt.Errorf("changing a manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(f.repo.Work, fileOf(changed)), content, 0o644); err != nil {
		return fmt.Errorf("changing a manifest: %w", err)
	}
	mark, err := f.site.mark(ctx)
	if err != nil {
		return err
	}
	l.git.Log.Reset()
	live, err := f.site.expect(ctx, changed, greeting)
	if err != nil {
		return err
	}
	revision, err := f.repo.CommitWork("Change one file")
	if err != nil {
		return err
	}
	pushed := time.Now()
	at, err := live(ctx)
	if err != nil {
		return err
	}
	fetched, err := fetchOf(&l.git.Log, f.repo.Name)
	if err != nil {
		return err
	}
	f.times.add(at.Sub(fetched))
	f.whole.add(at.Sub(pushed))
	if _, err := f.synced(ctx, 1, revision); err != nil {
		return err
	}
	requests, err := f.site.requests(ctx, serviceAccount("kubesync"), mark)
	if err != nil {
		return err
	}
	if wrote := writes(requests); len(wrote) > f.writes {
		f.writes, f.wrote = len(wrote), wrote
	}
	return nil
}

// expect begins to watch a ConfigMap and returns what waits until it says the
// greeting.
func (s *site) expect(ctx context.Context, o *unstructured.Unstructured, greeting string) (func(context.Context) (time.Time, error), error) {
	resource := s.dynamic.Resource(resourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace())
	watch, err := resource.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.GetName()).String()})
	if err != nil {
		return nil, fmt.Errorf("watch on %s: %w", o.GetName(), err)
	}
	return func(ctx context.Context) (time.Time, error) {
		defer watch.Stop()
		late := time.After(syncPatience)
		for {
			select {
			case <-ctx.Done():
				return time.Time{}, context.Cause(ctx)
			case <-late:
				return time.Time{}, fmt.Errorf("%s has not changed %s after the push", o.GetName(), syncPatience)
			case event, open := <-watch.ResultChan():
				if !open {
					return time.Time{}, fmt.Errorf("the watch on %s ended", o.GetName())
				}
				if live, ok := event.Object.(*unstructured.Unstructured); ok && greetingOf(live) == greeting {
					return time.Now(), nil
				}
			}
		}
	}, nil
}

// greetingOf returns the value that changes are made to.
func greetingOf(o *unstructured.Unstructured) string {
	greeting, _, _ := unstructured.NestedString(o.Object, "data", "greeting")
	return greeting
}

// fetchOf returns when the server was first asked for objects of a repo.
func fetchOf(log *gitserver.Log, repo string) (time.Time, error) {
	var first time.Time
	for _, r := range append(log.Requests(), log.UnderWay()...) {
		if r.Kind == gitserver.Fetch && strings.HasPrefix(r.Path, "/"+repo+".git/") && (first.IsZero() || r.Time.Before(first)) {
			first = r.Time
		}
	}
	if first.IsZero() {
		return first, errors.New("the change is live, but the git server was not asked for it")
	}
	return first, nil
}

// polling measures what polls without news take of the processor.
func (f *follower) polling(ctx context.Context, l *lab) (line, error) {
	share, used, err := cpuShare(f.PID, func() error { return testlab.Sleep(ctx, l.window) })
	if err != nil {
		return line{}, err
	}
	of := within(fmt.Sprintf("CPU, of one core, of a poll every second without news, among %d objects", len(f.objects.objects)), share, 1, percent)
	of.ours += fmt.Sprintf(" (%s in %s)", used, l.window)
	return of, nil
}

// oneFile measures what a commit costs that changes one file of a set.
func oneFile(ctx context.Context, l *lab) ([]line, error) {
	few, err := l.follow(ctx, l.fewConfigs)
	if err != nil {
		return nil, err
	}
	defer few.end()
	many, err := l.follow(ctx, l.configs)
	if err != nil {
		return nil, err
	}
	defer many.end()
	if err := errors.Join(few.site.rest(ctx), many.site.rest(ctx)); err != nil {
		return nil, err
	}
	for round := range l.commits {
		if err := errors.Join(few.commit(ctx, l), many.commit(ctx, l)); err != nil {
			return nil, err
		}
		l.Say("  commit %d of %d: %s with few objects, %s with many", round+1, l.commits, seconds(few.times[round]), seconds(many.times[round]))
	}
	lines := []line{
		atMost(fmt.Sprintf("from fetch to live, among %d objects", l.configs), many.times, fmt.Sprintf("among %d objects", l.fewConfigs), few.times, 1.2),
	}
	for _, f := range []*follower{few, many} {
		of := within(fmt.Sprintf("writes a commit, besides the Event that tells of it, among %d objects, at most", len(f.objects.objects)), f.writes, 3, count)
		of.ours += " (" + examples(f.wrote) + ")"
		lines = append(lines, of)
	}
	quiet, err := many.polling(ctx, l)
	if err != nil {
		return nil, err
	}
	lines = append(lines, quiet)
	of := text(fmt.Sprintf("from push to live, polling every second, among %d objects", l.configs), many.whole.String())
	of.peer = fmt.Sprintf("among %d objects: %s", l.fewConfigs, few.whole)
	return append(lines, of), errors.Join(few.Stop(ctx), many.Stop(ctx))
}

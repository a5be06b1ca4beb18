package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/daemon"
)

// objectsEach is how many objects each of many repos has.
const objectsEach = 10

// manyRepos measures one daemon with many small repos.
func manyRepos(ctx context.Context, l *lab) ([]line, error) {
	all, path, err := l.newRepos("app", l.repos)
	if err != nil {
		return nil, err
	}
	s, err := l.newSite(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	d, err := l.start(daemon.Env{"KUBECONFIG": s.kubesync.Kubeconfig, "CONFIG": path, "INTERVAL": l.idleInterval().String()})
	if err != nil {
		return nil, err
	}
	defer d.Kill()
	done, err := d.synced(ctx, l.repos, "")
	if err != nil {
		return nil, err
	}
	took := done.Sub(d.started)
	if _, err := s.versions(ctx, all); err != nil {
		return nil, err
	}
	if err := s.rest(ctx); err != nil {
		return nil, err
	}
	if err := testlab.Sleep(ctx, l.idleInterval()); err != nil { // each repo is polled once more
		return nil, err
	}
	now, err := memoryOf(d.PID)
	if err != nil {
		return nil, err
	}
	requests, err := s.requests(ctx, serviceAccount("kubesync"), 0)
	if err != nil {
		return nil, err
	}
	memory := within(fmt.Sprintf("memory in sync, %d repos of %d objects", l.repos, objectsEach), now.now, 120*megabyte, bytesize.String)
	memory.ours += fmt.Sprintf(" (peak, in the first sync: %s)", now.peak)
	return []line{memory, watchLine(all, openWatches(requests)), text("from start to all in sync", seconds(took.Seconds()))}, d.Stop(ctx)
}

// newRepos makes repos with a few objects each. It returns all the objects and where
// the list of the repos is, as CONFIG names it.
func (l *lab) newRepos(prefix string, count int) (all set, path string, err error) {
	all = set{files: map[string]string{}}
	var list []map[string]any
	for i := range count {
		name := fmt.Sprintf("%s-%03d", prefix, i)
		g := newGenerator(l.seed)
		objects, err := g.fill(name, objectsEach, 1, g.serviceAccount, g.configMap, g.service, g.deployment)
		if err != nil {
			return set{}, "", err
		}
		url, err := l.newRepo(name, objects.files)
		if err != nil {
			return set{}, "", err
		}
		all.objects = append(all.objects, objects.objects...)
		list = append(list, map[string]any{"url": url, "name": name, "ymldir": "kubernetes", "recursive": true, "privileged": true})
	}
	config, err := json.Marshal(list)
	if err != nil {
		return set{}, "", fmt.Errorf("list of repos: %w", err)
	}
	path = filepath.Join(l.Dir, prefix+".json")
	if err := os.WriteFile(path, config, 0o644); err != nil {
		return set{}, "", fmt.Errorf("list of repos: %w", err)
	}
	return all, path, nil
}

// partOf is the label by which the members of an apply set are found.
const partOf = "applyset.kubernetes.io/part-of"

// amongOthers measures one daemon with many small repos in a cluster that is full of
// the members of other apply sets, of a kind that all the repos use.
func amongOthers(ctx context.Context, l *lab) ([]line, error) {
	all, path, err := l.newRepos("among", l.amongRepos)
	if err != nil {
		return nil, err
	}
	others, err := configMaps(l.seed, l.configs)
	if err != nil {
		return nil, err
	}
	for i, o := range others.objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[partOf] = fmt.Sprintf("applyset-other-%d-v1", i%100)
		o.SetLabels(labels)
	}
	s, err := l.newSite(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	if _, err := bareSSA(ctx, s, others); err != nil {
		return nil, err
	}
	if err := s.rest(ctx); err != nil {
		return nil, err
	}
	d, err := l.start(daemon.Env{"KUBECONFIG": s.kubesync.Kubeconfig, "CONFIG": path, "INTERVAL": "1h"})
	if err != nil {
		return nil, err
	}
	defer d.Kill()
	done, err := d.synced(ctx, l.amongRepos, "")
	if err != nil {
		return nil, err
	}
	if _, err := s.versions(ctx, all); err != nil {
		return nil, err
	}
	now, err := memoryOf(d.PID)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("peak memory at start, %d repos of %d objects beside %d of other sets", l.amongRepos, objectsEach, len(others.objects))
	memory := within(what, now.peak, 300*megabyte, bytesize.String)
	memory.ours += fmt.Sprintf(" (in sync: %s)", now.now)
	return []line{memory, text("from start to all in sync", seconds(done.Sub(d.started).Seconds()))}, d.Stop(ctx)
}

// watchLine tells how many watches there are on the kinds of a set: one each.
func watchLine(s set, open map[string]int) line {
	var perKind []int
	for kind := range s.kinds() {
		perKind = append(perKind, open[resourceOf(kind).Resource])
	}
	most := slices.Max(perKind)
	if slices.Min(perKind) == 0 {
		most = 0 // a kind that is not watched is no success
	}
	var texts []string
	for _, resource := range slices.Sorted(maps.Keys(open)) {
		texts = append(texts, fmt.Sprintf("%s: %d", resource, open[resource]))
	}
	return exactly("open watches a kind", most, 1, strings.Join(texts, ", "))
}

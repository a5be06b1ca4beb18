package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/process"
)

// largeRepo measures how manifests come out of a repo that is mostly something
// else. There is no cluster: kubesync prints what it would apply.
func largeRepo(ctx context.Context, l *lab) ([]line, error) {
	g := newGenerator(l.seed)
	manifests, err := g.fill("team", l.manifests, 2, g.configMap)
	if err != nil {
		return nil, err
	}
	others := l.repoFiles - l.manifests
	l.Say("  making repos of %d and %d files", l.repoFiles, l.repoFiles*l.moreFiles)
	large, err := l.newLargeRepo(ctx, "large", manifests.files, others)
	if err != nil {
		return nil, err
	}
	larger, err := l.newLargeRepo(ctx, "larger", manifests.files, others*l.moreFiles)
	if err != nil {
		return nil, err
	}
	empty, err := l.newRepo("empty", map[string]string{"kubernetes/README.md": "Nothing yet.\n"})
	if err != nil {
		return nil, err
	}
	var ours, ofLarger, ofEmpty, sparse, whole series
	var peak bytesize
	for round := range l.cloneRound {
		for _, turn := range []struct {
			times *series
			run   func() (time.Duration, error)
		}{
			{&ours, func() (time.Duration, error) {
				e, err := l.plan(ctx, large, l.manifests)
				peak = max(peak, e.peak)
				return e.took, err
			}},
			{&sparse, func() (time.Duration, error) { return l.sparseClone(ctx, large) }},
			{&whole, func() (time.Duration, error) { return l.gitClone(ctx, large, "--depth=1") }},
			{&ofLarger, func() (time.Duration, error) { e, err := l.plan(ctx, larger, l.manifests); return e.took, err }},
			{&ofEmpty, func() (time.Duration, error) { e, err := l.plan(ctx, empty, 0); return e.took, err }},
		} {
			took, err := turn.run()
			if err != nil {
				return nil, err
			}
			turn.times.add(took)
		}
		l.Say("  round %d of %d: kubesync %s, sparse clone %s, shallow clone %s", round+1, l.cloneRound,
			seconds(ours[round]), seconds(sparse[round]), seconds(whole[round]))
	}
	what := fmt.Sprintf("wall time, %d manifests in %d files, %s", l.manifests, l.repoFiles, bytesize(l.repoFiles*l.fileBytes))
	return []line{
		atMost(what, ours, "git clone --depth 1 --filter=blob:none --sparse, git sparse-checkout set", sparse, 1),
		fasterThan(what, ours, "git clone --depth 1", whole, 20),
		within("peak memory, the largest of all rounds", peak, 40*megabyte, bytesize.String),
		atMost(fmt.Sprintf("wall time, %d × the other files", l.moreFiles), ofLarger, "kubesync, as above", ours, 1.5),
		text("wall time, an empty repo", ofEmpty.String()),
	}, nil
}

// plan runs kubesync without a cluster and checks that it printed so many objects.
func (l *lab) plan(ctx context.Context, url string, objects int) (ended, error) {
	spec, err := l.spec(daemon.Env{"REPO": url, "YMLDIR": "kubernetes", "DRYRUN": "on", "ONCE": "on"})
	if err != nil {
		return ended{}, err
	}
	e, err := toEnd(ctx, spec)
	if err != nil {
		return ended{}, err
	}
	printed, err := os.ReadFile(spec.Stdout)
	if err != nil {
		return ended{}, fmt.Errorf("output of kubesync: %w", err)
	}
	if n := strings.Count("\n"+string(printed), "\nkind: "); n != objects {
		return ended{}, fmt.Errorf("kubesync printed %d objects of %s, not %d", n, url, objects)
	}
	return e, nil
}

// sparseClone gets the manifests the way git does it best.
func (l *lab) sparseClone(ctx context.Context, url string) (time.Duration, error) {
	dir, err := l.MakeDir("sparse")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	clone, err := runGit(ctx, dir, "clone", "--quiet", "--depth=1", "--filter=blob:none", "--sparse", url, "clone")
	if err != nil {
		return 0, err
	}
	set, err := runGit(ctx, filepath.Join(dir, "clone"), "sparse-checkout", "set", "kubernetes")
	if err != nil {
		return 0, err
	}
	return clone + set, l.checkClone(dir)
}

// gitClone clones a repo.
func (l *lab) gitClone(ctx context.Context, url string, options ...string) (time.Duration, error) {
	dir, err := l.MakeDir("clone")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	took, err := runGit(ctx, dir, append(append([]string{"clone", "--quiet"}, options...), url, "clone")...)
	if err != nil {
		return 0, err
	}
	return took, l.checkClone(dir)
}

// checkClone makes sure that the manifests are there.
func (l *lab) checkClone(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "clone", "kubernetes", "*", "*.yaml"))
	if err != nil {
		return fmt.Errorf("files of a clone: %w", err)
	}
	if len(files) != l.manifests {
		return fmt.Errorf("a clone has %d manifests, not %d", len(files), l.manifests)
	}
	return nil
}

// runGit runs git with no configuration but its own.
func runGit(ctx context.Context, dir string, args ...string) (time.Duration, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return 0, fmt.Errorf("git: %w", err)
	}
	output := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".git-log")
	e, err := toEnd(ctx, process.Spec{
		Program: git, Args: args, Dir: dir, Stdout: output,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"},
	})
	return e.took, err
}

package main

import (
	"context"
	"fmt"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/daemon"
)

// polls measures what a poll costs that finds nothing new, for few and many refs.
func polls(ctx context.Context, l *lab) ([]line, error) {
	few, err := l.pollsWith(ctx, l.fewRefs)
	if err != nil {
		return nil, err
	}
	many, err := l.pollsWith(ctx, l.manyRefs)
	if err != nil {
		return nil, err
	}
	same := line{
		what:   fmt.Sprintf("bytes a poll, %d refs", l.manyRefs),
		ours:   fmt.Sprintf("%.0f", many.bytesEach()),
		peer:   fmt.Sprintf("%d refs: %.0f", l.fewRefs, few.bytesEach()),
		ratio:  fmt.Sprintf("%.2f", many.bytesEach()/few.bytesEach()),
		target: "the same",
		met:    verdict(few.bytesEach() == many.bytesEach()),
	}
	return []line{same, many.line()}, nil
}

// pollsWith lets a daemon without a cluster poll a repo with so many refs.
func (l *lab) pollsWith(ctx context.Context, refs int) (pollCosts, error) {
	name := fmt.Sprintf("refs-%06d", refs) // of equal length: it is part of what is sent
	url, err := l.newRepo(name, map[string]string{"kubernetes/README.md": "Nothing yet.\n"})
	if err != nil {
		return pollCosts{}, err
	}
	if err := l.addRefs(ctx, name, refs); err != nil {
		return pollCosts{}, err
	}
	d, err := l.start(daemon.Env{"REPO": url, "DRYRUN": "on", "INTERVAL": "1s"})
	if err != nil {
		return pollCosts{}, err
	}
	defer d.Kill()
	if _, err := d.logged(ctx, "planned", 1, ""); err != nil {
		return pollCosts{}, err
	}
	l.git.Log.Reset()
	if err := testlab.Sleep(ctx, l.window); err != nil {
		return pollCosts{}, err
	}
	seen, err := pollsOf(l.git.Log.Requests(), name)
	if err != nil {
		return pollCosts{}, err
	}
	return seen, d.Stop(ctx)
}

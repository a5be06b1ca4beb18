package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	testlab "github.com/kubesync/kubesync/test/lab"
)

const (
	// quietTime is how long no one may ask for anything before a step counts as over.
	quietTime = 400 * time.Millisecond
	// pokeTime is after how much silence a daemon that is not in sync is made to poll: it
	// would by itself, seconds or minutes later.
	pokeTime = 700 * time.Millisecond
	// settleTime is between two looks that have to be alike.
	settleTime = 300 * time.Millisecond
	// patience bounds the daemon's way to a state. It is long, because this shares its
	// machine with others, and a dead daemon's Lease may be waited out.
	patience = 2 * time.Minute
	// truthTime is how long the cluster may take to be what the daemon says it is:
	// controllers finish what was asked of them.
	truthTime = 20 * time.Second
)

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](of map[K]V) []K { return slices.Sorted(maps.Keys(of)) }

// setID is the label of a repo's objects, as the ApplySet specification has it.
func setID(repo string) string {
	sum := sha256.Sum256([]byte("kubesync-" + repo + ".kube-system.ConfigMap."))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// reference is what an uninterrupted run came to.
type reference struct {
	requests map[string][]string // of each step, by name, as they came
	states   map[string]state
}

// failure is a step that did not end as it should.
type failure struct {
	step   string
	points []point // that were tried in it
	what   string  // what is wrong
	log    string  // the end of the daemon's
}

// String says all that a user needs who looks into it.
func (f failure) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "FAILED: step %s", f.step)
	for _, p := range f.points {
		fmt.Fprintf(&text, "\n  %s %s", p.fate, p.request)
	}
	fmt.Fprintf(&text, "\n%s\nthe end of the daemon's log:\n%s\n", f.what, f.log)
	if len(f.points) > 0 {
		fmt.Fprint(&text, "only this again: scripts/crash")
		for _, p := range f.points {
			fmt.Fprintf(&text, " -point '%s'", p)
		}
	}
	return text.String()
}

// tellReference runs the story without a fault.
func (l *lab) tellReference(ctx context.Context) (_ reference, err error) {
	s, err := l.newSite(ctx)
	if err != nil {
		return reference{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	expected := reference{requests: map[string][]string{}, states: map[string]state{}}
	for _, at := range steps() {
		if err := errors.Join(s.play(ctx, at, nil), s.calm(ctx)); err != nil {
			return reference{}, fmt.Errorf("%s: %w\n%s", at.name, err, s.logTail())
		}
		expected.requests[at.name] = s.tap.requests()
		seen, err := s.steady(ctx)
		if err != nil {
			return reference{}, fmt.Errorf("%s: %w", at.name, err)
		}
		if err := s.untouched(seen); err != nil {
			return reference{}, fmt.Errorf("%s: %w", at.name, err)
		}
		if expected.states[at.name], err = s.compare(seen); err != nil {
			return reference{}, fmt.Errorf("%s: %w", at.name, err)
		}
		l.Say("reference: %s: %d requests, %d objects", at.name, len(expected.requests[at.name]), len(expected.states[at.name]))
	}
	return expected, errors.Join(s.stopDaemon(ctx), s.discreet())
}

// steady looks until two looks are alike.
func (s *site) steady(ctx context.Context) (snapshot, error) {
	var before state
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		seen, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		now, err := s.compare(seen)
		if err != nil {
			return nil, err
		}
		if before != nil && maps.Equal(before, now) {
			return seen, nil
		}
		before = now
		if err := testlab.Sleep(ctx, 3*settleTime); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the cluster does not come to rest")
}

// play has one step happen, with faults.
func (s *site) play(ctx context.Context, at step, faults map[string]fault) error {
	if at.before != nil {
		if err := at.before(ctx, s); err != nil {
			return err
		}
	}
	if s.daemon != nil {
		if err := s.daemon.forget(); err != nil {
			return err
		}
	}
	s.tap.begin(faults)
	act := at.act
	if act == nil {
		act = pushAndPoll
	}
	return act(ctx, s, func() error { return s.push(at) })
}

// pushAndPoll is what happens in most steps.
func pushAndPoll(_ context.Context, s *site, push func() error) error {
	if err := push(); err != nil {
		return err
	}
	return s.poke()
}

// poke has the daemon look at everything now.
func (s *site) poke() error { return s.daemon.Signal(syscall.SIGHUP) }

// calm waits for the end of a step in which no one dies.
func (s *site) calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not in sync after %s", patience))
	defer cancel()
	return s.restful(ctx, nil, false)
}

// restful waits until the daemon says that all is in sync, and asks nothing more.
// away is called when the daemon has been killed; without it that is an error. A poking
// site does not wait for the daemon's next try, but has it poll.
func (s *site) restful(ctx context.Context, away func() error, poking bool) error {
	for {
		if s.daemon.Ended() {
			if !s.killed || away == nil {
				return s.daemon.Exited()
			}
			if err := away(); err != nil {
				return err
			}
		}
		done, err := s.synced()
		if err != nil {
			return err
		}
		if done && s.tap.quiet(quietTime) && !s.daemon.Ended() {
			return nil
		}
		if !done && poking && s.daemon.spoke && s.tap.quiet(pokeTime) {
			if err := s.poke(); err != nil {
				return err
			}
			s.tap.touch()
		}
		if err := testlab.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// logTail is the end of the daemon's log: all of its last lines, and before them those
// that tell of more than that it looked again.
func (s *site) logTail() string {
	const last, before = 15, 40
	content, err := os.ReadFile(s.path("log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	end := lines[max(0, len(lines)-last):]
	loud := slices.DeleteFunc(lines[:len(lines)-len(end)], func(line string) bool {
		return strings.Contains(line, `"level":"debug"`) || strings.Contains(line, "signal received")
	})
	return strings.Join(append(slices.Clone(loud[max(0, len(loud)-before):]), end...), "\n")
}

// tell runs the story with what befalls the requests of some of its steps. After each
// the daemon has to bring the cluster to what the reference says, a killed one after it
// was started again, before the next step happens. It returns which points were reached,
// and the first failure.
func (l *lab) tell(ctx context.Context, expected reference, r run) (reached []point, failed *failure, err error) {
	s, err := l.newSite(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.waitOut = r.waitOut
	uids := map[string]types.UID{}
	for _, at := range steps() {
		points := r.points[at.name]
		seen, problem := s.survive(ctx, at, expected.states[at.name], points, uids)
		if ctx.Err() != nil {
			return reached, nil, context.Cause(ctx)
		}
		for _, p := range points {
			if s.tap.hit(p.request) {
				reached = append(reached, p)
			}
		}
		if problem != nil {
			return reached, &failure{step: at.name, points: points, what: problem.Error(), log: s.logTail()}, nil
		}
		uids = map[string]types.UID{}
		for name, object := range seen {
			uids[name] = object.GetUID()
		}
	}
	return reached, nil, errors.Join(s.stopDaemon(ctx), s.discreet())
}

// survive has a step happen, with what befalls its requests, and checks what became of
// it. uids are those of the objects before.
func (s *site) survive(ctx context.Context, at step, want state, points []point, uids map[string]types.UID) (snapshot, error) {
	var atDeath snapshot
	away := func() error {
		s.tap.disarm()
		if err := s.mourn(ctx); err != nil {
			return err
		}
		var err error
		if atDeath, err = s.look(ctx); err != nil {
			return err
		}
		return s.startDaemon()
	}
	faults, falsified, limit := map[string]fault{}, false, patience
	for _, p := range points {
		faults[p.request] = p.fault(s)
		falsified = falsified || !p.fate.deadly()
		if p.fate == stall {
			limit += stallTime
		}
	}
	if err := s.play(ctx, at, faults); err != nil && !s.killed {
		return nil, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not in sync after %s", limit))
	defer cancel()
	if err := s.restful(waiting, away, falsified); err != nil {
		return nil, err
	}
	seen, err := s.truthful(ctx, want, falsified)
	if err != nil {
		return nil, err
	}
	s.tap.disarm()
	return seen, errors.Join(s.untouched(seen), s.discreet(), same(at, want, uids, atDeath, seen))
}

// truthful waits until the cluster is what the uninterrupted run came to, as the daemon
// says that it is. One that was answered falsely may say as well what else is wrong, and is then
// made to look again.
func (s *site) truthful(ctx context.Context, want state, falsified bool) (snapshot, error) {
	poked := time.Now()
	for deadline := time.Now().Add(truthTime); ; {
		seen, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		now, err := s.compare(seen)
		if err != nil {
			return nil, err
		}
		differs := difference(want, now)
		if differs == "" {
			return seen, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("kubesync says that all is in sync, but the cluster differs from that of an uninterrupted run:\n%s", differs)
		}
		if err := s.daemon.follow(); err != nil {
			return nil, err
		}
		if falsified && s.daemon.trouble != "" && time.Since(poked) > truthTime/4 {
			poked = time.Now()
			if err := s.poke(); err != nil {
				return nil, err
			}
		}
		if err := testlab.Sleep(ctx, settleTime); err != nil {
			return nil, err
		}
	}
}

// same checks that nothing that git declares before and after was ever deleted: it is
// the same object still as it was before the step, and when the daemon died.
func same(at step, declared state, before map[string]types.UID, atDeath, now snapshot) error {
	var problems []error
	for _, name := range sorted(declared) {
		if slices.Contains(at.redone, name) {
			continue
		}
		object := now[name]
		is := object.GetUID()
		if was, there := before[name]; there && was != is {
			problems = append(problems, fmt.Errorf("%s was deleted and made again: uid %s before the step, %s now", name, was, is))
		}
		if dead, there := atDeath[name]; there && dead.GetUID() != is {
			problems = append(problems, fmt.Errorf("%s was deleted and made again: uid %s when the daemon died, %s now", name, dead.GetUID(), is))
		}
	}
	return errors.Join(problems...)
}

package main

import (
	"math/rand/v2"
)

// dice are what is drawn with: the same seed gives the same walk.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0))} }

// once reports whether it is the one time in so many.
func (d dice) once(in int) bool { return d.IntN(in) == 0 }

// between returns a number of a range, the ends included.
func (d dice) between(from, to int) int { return from + d.IntN(to-from+1) }

// oneOf returns one of a list; the zero value if there is none.
func oneOf[T any](d dice, list []T) (one T) {
	if len(list) > 0 {
		one = list[d.IntN(len(list))]
	}
	return one
}

// weights says how often a step of a kind is tried. What the model does not allow at
// the moment is drawn again.
func weights() []op {
	var bag []op
	for _, w := range []struct {
		times int
		ops   []op
	}{
		{16, []op{opPush}},
		{5, []op{opMove, opDelete, opSpoil}},
		{3, []op{opForce, opRevert, opAnnotate, opUnlabel, opClientSide, opConflict, opRestart, opKill, opApprove}},
		{2, []op{
			opDropBranch, opRelabel, opAlienate, opReclaim, opServerSide, opSuspend, opUnsuspend, opKeep, opUnkeep,
			opForeign, opForeignLabel, opUnlist, opList, opAPIOutage, opAPICut, opAPIFaults, opGitOutage, opStandby,
			opSuspendRepo, opUnsuspendRepo, opWait, opRelease,
		}},
		{1, []op{opForeignEdit, opForeignDelete, opPruneOff, opPruneOn, opBreakList, opMendList, opNoStandby, opFailover}},
	} {
		for range w.times {
			bag = append(bag, w.ops...)
		}
	}
	return bag
}

// triesToDraw bounds how often a step of one kind is drawn anew because it is not
// allowed, before another kind gets its turn.
const triesToDraw = 60

// draw returns the next step of a walk.
func (w *world) draw(d dice, kinds []op) step {
	for {
		kind := oneOf(d, kinds)
		for range triesToDraw {
			if s := w.drawStep(d, kind); w.allows(s) {
				return s
			}
		}
	}
}

// drawStep draws a step of a kind, allowed or not.
func (w *world) drawStep(d dice, kind op) step {
	s := step{op: kind}
	switch s.op {
	case opPush:
		s.repo = w.drawRepo(d)
		w.drawPush(d, &s)
	case opForce:
		s.repo, s.number = w.drawRepo(d), d.between(1, forceHistory)
	case opMove:
		s.repo, s.to = w.drawRepo(d), w.drawRepo(d)
		s.id = oneOf(d, w.repo(s.repo).head().tree.ids())
		s.addFirst = d.once(2)
	case opRevert, opDropBranch, opApprove, opSuspendRepo, opUnsuspendRepo, opUnlist, opList, opPruneOff, opPruneOn:
		s.repo = w.drawRepo(d)
	case opForeign:
		s.id = oneOf(d, append(undeclared(), universe()...))
		s.number = d.between(0, 1)
		if d.once(3) {
			s.repo = w.drawRepo(d)
		}
	case opForeignLabel:
		s.id, s.repo = oneOf(d, w.liveIDs()), w.drawRepo(d)
	case opRelabel:
		s.id, s.to = oneOf(d, w.liveIDs()), w.drawRepo(d)
	case opAPIOutage, opAPIFaults, opGitOutage:
		s.number = d.between(0, 5)
	case opKill, opFailover:
		s.number = d.between(0, 3)
	case opAPICut, opRestart, opStandby, opNoStandby, opRelease, opBreakList, opMendList, opWait, opQuiet:
	default:
		s.id = oneOf(d, w.liveIDs())
	}
	return s
}

func (w *world) drawRepo(d dice) string {
	return oneOf(d, w.repos).name
}

// drawPush draws what a commit changes: mostly a few objects, sometimes all of them
// at once, and sometimes it cannot be loaded.
func (w *world) drawPush(d dice, s *step) {
	now := w.repo(s.repo).head().tree
	s.trailer = d.once(8)
	switch d.between(0, 15) {
	case 0: // nothing is left
		for _, i := range now.ids() {
			s.edits = append(s.edits, edit{id: i, gone: true})
		}
	case 1, 2:
		s.broken = oneOf(d, []string{brokenYAML, brokenNameless, brokenTwice, brokenRefused})
		s.trailer = false
	case 3: // a Namespace is renamed, or comes and goes, with all that is in it
		w.drawNamespace(d, s, now)
	case 4: // much leaves
		for _, i := range now.ids() {
			if !d.once(3) {
				s.edits = append(s.edits, edit{id: i, gone: true})
			}
		}
	default:
		w.drawEdits(d, s, now)
	}
}

// drawEdits draws changes to a few objects.
func (w *world) drawEdits(d dice, s *step, now tree) {
	done := map[id]bool{}
	for range d.between(1, 5) {
		i := oneOf(d, universe())
		if declared := now.ids(); len(declared) > 0 && !d.once(3) {
			i = oneOf(d, declared)
		}
		e, declared := now[i]
		if done[i] || !declared && !w.addable(w.repo(s.repo), i) {
			continue // else hardly any of them all would be allowed
		}
		done[i] = true
		if declared && d.once(4) {
			s.edits = append(s.edits, edit{id: i, gone: true})
			continue
		}
		s.edits = append(s.edits, edit{id: i, entry: drawEntry(d, i, e)})
	}
}

// drawEntry draws what a tree says of an object from now on.
func drawEntry(d dice, i id, was entry) entry {
	e := entry{variant: d.between(0, 9), dir: was.dir}
	if d.once(4) {
		e.dir = d.between(0, 2)
	}
	odd := func() bool { return d.once(12) }
	e.invalid = i.kind == configMap && odd()
	e.ignore = i.kind == configMap && odd()
	e.keep = !i.foundation() && odd()
	return e
}

// drawNamespace moves what a repo has in one namespace to another, the movable one
// mostly, or takes it out of git with all that is in it.
func (w *world) drawNamespace(d dice, s *step, now tree) {
	from := oneOf(d, []string{"a", "b", "c"})
	to := oneOf(d, []string{"a", "b", "c", ""})
	r := w.repo(s.repo)
	for _, i := range now.ids() {
		if i.namespace != from {
			continue
		}
		s.edits = append(s.edits, edit{id: i, gone: true})
		moved := i
		moved.namespace = to
		if _, taken := now[moved]; to != "" && to != from && !taken && w.addable(r, moved) && i.kind != volumeClaim {
			s.edits = append(s.edits, edit{id: moved, entry: now[i]})
		}
	}
	_, declared := now[movable()]
	switch {
	case from == "c" && declared:
		s.edits = append(s.edits, edit{id: movable(), gone: true})
	case to == "c" && !declared:
		s.edits = append(s.edits, edit{id: movable(), entry: entry{}})
	}
}

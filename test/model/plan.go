package main

// plan draws the steps of a walk: the same for the same seed and number. They are
// drawn from what the model allows at each point, and need no server.
func plan(seed, steps int) []step {
	p := newPlanner(seed, weights())
	planned := p.first()
	for len(planned) < steps {
		planned = append(planned, p.next()...)
	}
	if planned[len(planned)-1].op != opQuiet {
		planned = append(planned, p.quiet())
	}
	return planned
}

// planner draws a walk step by step.
type planner struct {
	world *world
	dice  dice
	kinds []op
	burst int // steps until the next quiet point
}

func newPlanner(seed int, kinds []op) *planner {
	return &planner{world: newWorld(), dice: newDice(uint64(seed)), kinds: kinds}
}

// first declares something in each repo.
func (p *planner) first() []step {
	var steps []step
	for _, r := range p.world.repos {
		s := step{op: opPush, repo: r.name, edits: p.world.drawFirst(p.dice, r)}
		p.world.act(s)
		steps = append(steps, s)
	}
	return append(steps, p.quiet())
}

// drawFirst draws what a repo starts with.
func (w *world) drawFirst(d dice, r *repo) []edit {
	var edits []edit
	all := universe()
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, i := range all[:d.between(9, 20)] {
		if w.addable(r, i) && len(edits) < repoCapacity {
			edits = append(edits, edit{id: i, entry: entry{variant: d.between(0, 9)}})
		}
	}
	return edits
}

// next draws a step, and a quiet point when it is time for one.
func (p *planner) next() []step {
	s := p.world.draw(p.dice, p.kinds)
	p.world.act(s)
	steps := []step{s}
	if p.burst--; p.burst <= 0 {
		steps = append(steps, p.quiet())
	}
	return steps
}

// quiet is a quiet point.
func (p *planner) quiet() step {
	p.world.settle()
	p.world.begin()
	p.burst = p.dice.between(1, maxBurst)
	return step{op: opQuiet}
}

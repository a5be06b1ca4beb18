package webhook

import (
	"sync"
	"time"
)

// pace calls a function at most once in a while for each name: at once if it was not
// called lately, else when the while is over, once for all that asked meanwhile.
type pace struct {
	while time.Duration
	call  func(name string)

	mu      sync.Mutex      // guards what follows
	pending map[string]bool // names called lately; true: asked for again since
}

func newPace(while time.Duration, call func(string)) *pace {
	return &pace{while: while, call: call, pending: map[string]bool{}}
}

// ask has the function called.
func (p *pace) ask(name string) {
	p.mu.Lock()
	if _, lately := p.pending[name]; lately {
		p.pending[name] = true
		p.mu.Unlock()
		return
	}
	p.pending[name] = false
	p.mu.Unlock()
	time.AfterFunc(p.while, func() { p.over(name) })
	p.call(name)
}

// over ends a name's while.
func (p *pace) over(name string) {
	p.mu.Lock()
	again := p.pending[name]
	delete(p.pending, name)
	p.mu.Unlock()
	if again {
		p.ask(name)
	}
}

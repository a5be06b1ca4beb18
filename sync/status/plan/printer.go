package plan

import (
	"fmt"
	"io"
	stdsync "sync"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync"
)

// Printer shows a dry run: for each repo the text of its plan, and again only when
// that text changes.
type Printer struct {
	render func(sync.Report) string

	mu   stdsync.Mutex // guards what follows
	out  io.Writer
	last map[string]string // what was printed, by repo
	err  error             // of the first write that failed
}

// NewPrinter returns an observer that writes what render makes of each report.
func NewPrinter(out io.Writer, render func(sync.Report) string) *Printer {
	return &Printer{render: render, out: out, last: map[string]string{}}
}

// Unreadable does nothing: a dry run waits for nothing.
func (p *Printer) Unreadable(sync.Unreadable) {}

// Begin prints nothing.
func (p *Printer) Begin(sync.Progress) {}

// Observe prints the plan if it is not the one printed last.
func (p *Printer) Observe(report sync.Report) {
	if report.State() == sync.Interrupted {
		return
	}
	text := p.render(report)
	p.mu.Lock()
	defer p.mu.Unlock()
	if text == p.last[report.Repo] {
		return
	}
	p.last[report.Repo] = text
	p.print(text)
}

// Drift prints nothing: a dry run watches nothing.
func (p *Printer) Drift(apply.Drift) {}

// Unlist prints that nothing is planned any more.
func (p *Printer) Unlist(repo string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, repo)
	p.print(fmt.Sprintf("# %s left the list of repos: its objects would stay\n", repo))
}

func (p *Printer) print(text string) {
	if _, err := io.WriteString(p.out, text); err != nil && p.err == nil {
		p.err = err
	}
}

// Err returns why the text could not be written, for example a closed pipe.
func (p *Printer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

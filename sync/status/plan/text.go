package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/printable"
	"github.com/kubesync/kubesync/sync"
)

// Text returns for people what a dry run found that a sync would do. With
// colour it holds ANSI sequences.
func Text(report sync.Report, colour bool) string {
	p := painter{colour: colour}
	p.line(bold, "# %s", headline(report))
	for _, warning := range warnings(report) {
		p.line(yellow, "  warning: %s", indented(warning))
	}
	for _, outcome := range report.Result.Outcomes {
		p.outcome(outcome)
	}
	if report.Err != nil {
		p.line(red, "  %s failed, so nothing would be applied or pruned:", report.FailedStage)
		p.problem(report.Err)
	}
	p.line(bold, "# %s: %s", report.Repo, summary(report))
	return p.text.String()
}

// Manifests returns the objects of a dry run without a cluster as a stream of
// YAML documents, with what there is to say about them as comments.
func Manifests(report sync.Report) string {
	var text strings.Builder
	comment(&text, headline(report))
	for _, warning := range warnings(report) {
		comment(&text, "warning: "+warning)
	}
	for _, o := range report.Result.Outcomes {
		text.WriteString("---\n")
		comment(&text, where(o)+remark(o))
		text.WriteString(o.Diff)
	}
	if report.Err != nil {
		comment(&text, fmt.Sprintf("%s failed, so nothing would be applied:\n%s", report.FailedStage, report.Err))
	}
	comment(&text, fmt.Sprintf("%s: %s", report.Repo, summary(report)))
	return text.String()
}

// comment writes lines as YAML comments.
func comment(text *strings.Builder, lines string) {
	for line := range strings.Lines(printable.Text(lines)) {
		text.WriteString("# " + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// headline names the repo, the revision and where in it the manifests are.
func headline(report sync.Report) string {
	text := fmt.Sprintf("%s (%s)", report.Repo, report.Tier)
	if report.Revision.ID == "" {
		return text
	}
	text += " at " + report.Revision.Short()
	if report.Revision.Ref != "" {
		text += " of " + report.Revision.Ref
	}
	if report.Revision.Subject != "" {
		text += fmt.Sprintf(" %q", report.Revision.Subject)
	}
	if report.Source.Kind != "" {
		text += ", manifests from " + report.Source.Kind
		if report.Source.Dir != "" {
			text += " (" + report.Source.Dir + ")"
		}
	}
	return text
}

// warnings returns what a person should look at.
func warnings(report sync.Report) []string {
	texts := append([]string{}, report.Notes...)
	texts = append(texts, report.Result.Warnings...)
	for _, o := range report.Result.Outcomes {
		for _, warning := range o.Warnings {
			texts = append(texts, o.ID.String()+": "+warning)
		}
	}
	return texts
}

// summary counts what would be done, in one line.
func summary(report sync.Report) string {
	if report.Result.Suspended != "" {
		return "suspended, nothing would be done: " + report.Result.Suspended
	}
	if report.Err != nil {
		return "failed"
	}
	counts := report.Result.Counts()
	var parts []string
	for _, action := range apply.Actions() {
		if counts[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[action], planned(action).summary))
		}
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "no objects"
	}
	unverified := 0
	for _, o := range report.Result.Outcomes {
		if o.Unverified {
			unverified++
		}
	}
	if unverified > 0 {
		text += fmt.Sprintf(" (%d not verified)", unverified)
	}
	if report.Result.PruneHeld != "" {
		text += "; " + report.Result.PruneHeld
	}
	return text
}

// style is how an action is shown before it is done.
type style struct{ mark, verb, summary, colour string }

func planned(action apply.Action) style {
	switch action {
	case apply.Created:
		return style{"+", "create", "to create", green}
	case apply.Configured:
		return style{"~", "change", "to change", yellow}
	case apply.Pruned:
		return style{"-", "prune", "to prune", red}
	case apply.Blocked:
		return style{"=", "keep", "to keep", magenta}
	case apply.Pending:
		return style{"?", "pend", "pending", magenta}
	case apply.Refused:
		return style{"!", "refuse", "refused", red}
	case apply.Failed:
		return style{"!", "fail", "that would fail", red}
	}
	return style{" ", "leave", "unchanged", ""}
}

// ANSI sequences.
const (
	plain   = "\x1b[0m"
	bold    = "\x1b[1m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	magenta = "\x1b[35m"
	cyan    = "\x1b[36m"
)

// painter builds a text with or without colour.
type painter struct {
	text   strings.Builder
	colour bool
}

// line writes one line in a colour; "" for none.
func (p *painter) line(colour, format string, args ...any) {
	line := printable.Text(fmt.Sprintf(format, args...))
	if p.colour && colour != "" {
		line = colour + line + plain
	}
	p.text.WriteString(line + "\n")
}

// outcome writes what would become of an object; what would stay as it is is
// only counted, unless there is something to say about it.
func (p *painter) outcome(o apply.Outcome) {
	if o.Action == apply.Unchanged && sync.Reason(o) == "" {
		return
	}
	how := planned(o.Action)
	p.line(how.colour, "  %s %-6s %s%s", how.mark, how.verb, where(o), indented(remark(o)))
	for line := range strings.Lines(o.Diff) {
		line = strings.TrimSuffix(line, "\n")
		p.line(diffColour(line), "      %s", line)
	}
}

// indented keeps the further lines of a text below its first: no line of it can be taken
// for one of the plan's.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n      ") }

// where names an object and its place in the repo.
func where(o apply.Outcome) string {
	if o.Origin.File == "" {
		return o.ID.String()
	}
	return fmt.Sprintf("%s (%s)", o.ID, o.Origin)
}

// remark says why, and whether the API server confirmed it.
func remark(o apply.Outcome) string {
	text := ""
	if o.Unverified {
		text = " (not verified)"
	}
	if reason := sync.Reason(o); reason != "" {
		text += ": " + reason
	}
	return text
}

func diffColour(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "@@"):
		return cyan
	}
	return ""
}

// problem writes an error, each problem in the manifests on a line of its own.
func (p *painter) problem(err error) {
	text := err.Error()
	var problems manifest.Problems
	if errors.As(err, &problems) {
		text = problems.Error()
	}
	for line := range strings.Lines(text) {
		p.line(red, "    %s", strings.TrimSuffix(line, "\n"))
	}
}

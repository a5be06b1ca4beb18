package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubesync/kubesync/sync/config/redact"
)

// Mistake is one thing wrong with the configuration.
type Mistake struct {
	Variable string // the environment variable at fault
	Text     string // the bad value, unless it may be a secret, and what is accepted
}

// String returns "VARIABLE: text".
func (m Mistake) String() string { return m.Variable + ": " + m.Text }

// Errors is every mistake of a configuration, in the order of the variables. A
// process that meets it at start exits with status 2.
type Errors []Mistake

// Error lists the mistakes, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, mistake := range e {
		lines[i] = mistake.String()
	}
	return strings.Join(lines, "\n")
}

// mistakes collects what is wrong while a configuration is built.
type mistakes struct{ found Errors }

// add notes a mistake. The arguments must not hold a secret.
func (m *mistakes) add(variable, format string, args ...any) {
	m.found = append(m.found, Mistake{Variable: variable, Text: fmt.Sprintf(format, args...)})
}

// parse returns the domain value of a variable that holds no secret, or notes the
// mistake. A parser's error says what is accepted; the value is put before it
// unless the parser has done so itself.
func parse[T any](m *mistakes, variable, value string, parser func(string) (T, error)) T {
	parsed, err := parser(value)
	if err == nil {
		return parsed
	}
	if strings.Contains(err.Error(), strconv.Quote(value)) {
		m.add(variable, "%v", err)
	} else {
		m.add(variable, "%q: %v", value, err)
	}
	var zero T
	return zero
}

// err returns the mistakes as an error in the order in which the variables are
// documented, nil if there are none. Every known secret is masked, whichever parser it
// came from.
func (m *mistakes) err(redactor *redact.Redactor) error {
	if len(m.found) == 0 {
		return nil
	}
	for i := range m.found {
		m.found[i].Text = redactor.String(m.found[i].Text)
	}
	order := map[string]int{}
	for i, variable := range Variables() {
		order[variable.Name] = i
	}
	slices.SortStableFunc(m.found, func(a, b Mistake) int { return order[a.Variable] - order[b.Variable] })
	return m.found
}

// Package machine tells what something was measured on, and what of, for the results that
// are committed: figures travel no further than that.
package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine is what was measured on, and what of.
type Machine struct {
	date                      time.Time
	commit                    string
	cores                     int
	processor, memory, system string
	kubernetes, git           string
}

// Describe looks at the machine. The working directory is the checkout. It is an error if
// git, uname or go cannot be asked.
func Describe(ctx context.Context) (Machine, error) {
	m := Machine{date: time.Now().UTC(), cores: runtime.NumCPU()}
	for _, c := range []struct {
		target  *string
		command []string
	}{
		{&m.commit, []string{"git", "describe", "--always", "--dirty"}},
		{&m.git, []string{"git", "version"}},
		{&m.kubernetes, []string{"go", "-C", "test/controlplane", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"}},
		{&m.system, []string{"uname", "-sr"}},
	} {
		out, err := exec.CommandContext(ctx, c.command[0], c.command[1:]...).Output()
		if err != nil {
			return Machine{}, fmt.Errorf("%s: %w", strings.Join(c.command, " "), err)
		}
		*c.target = strings.TrimSpace(string(out))
	}
	m.processor = Field("/proc/cpuinfo", "model name")
	m.memory = Field("/proc/meminfo", "MemTotal")
	return m, nil
}

// Field returns what a file of /proc says of name first, "unknown" if nothing.
func Field(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(content)) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// Table returns it as a table in Markdown.
func (m Machine) Table() string {
	return fmt.Sprintf("| date | commit | cores | processor | memory | system | Go | Kubernetes | git |\n|---|---|---|---|---|---|---|---|---|\n| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n",
		m.date.Format("2006-01-02 15:04 MST"), m.commit, m.cores, m.processor, m.memory, m.system, runtime.Version(), m.kubernetes,
		strings.TrimPrefix(m.git, "git version "))
}

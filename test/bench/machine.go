package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine is what the figures were measured on, and what of.
type machine struct {
	date                       time.Time
	commit                     string
	cores                      int
	processor, memory, system  string
	goVersion, kubernetes, git string
}

// describeMachine looks at the machine. The working directory is the checkout.
func describeMachine(ctx context.Context) (machine, error) {
	m := machine{date: time.Now().UTC(), cores: runtime.NumCPU(), goVersion: runtime.Version()}
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
			return machine{}, fmt.Errorf("%s: %w", strings.Join(c.command, " "), err)
		}
		*c.target = strings.TrimSpace(string(out))
	}
	m.processor = field("/proc/cpuinfo", "model name")
	m.memory = field("/proc/meminfo", "MemTotal")
	return m, nil
}

// field returns what a file of /proc says of name first, "unknown" if nothing.
func field(path, name string) string {
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

func (m machine) write(w io.Writer) {
	fmt.Fprintf(w, "| date | commit | cores | processor | memory | system | Go | Kubernetes | git |\n|---|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(w, "| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", m.date.Format("2006-01-02 15:04 MST"), m.commit, m.cores,
		m.processor, m.memory, m.system, m.goVersion, m.kubernetes, strings.TrimPrefix(m.git, "git version "))
}

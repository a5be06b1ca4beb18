package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// child is set in the process that is the command.
const child = "KUBESYNC_TEST_GITSERVER"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestServesUntilInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo, err := gitserver.CreateRepo(dir, "site", "master")
	if err != nil {
		t.Fatal(err)
	}
	hash, err := repo.Commit("first", map[string]string{"a": "1"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
	cmd.Env = append(os.Environ(), child+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "git", "ls-remote", strings.TrimSpace(url)+"/site.git").Output()
	if err != nil || !strings.Contains(string(out), hash) {
		t.Errorf("ls-remote %s: %v\n%s", url, err, out)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	if status := run(nil, io.Discard, io.Discard); status != 2 {
		t.Errorf("got exit status %d without a directory", status)
	}
}

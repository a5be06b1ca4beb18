package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/sync/config"
)

// TestModesJoinTheirGoroutines runs each mode, with an API server that knows nothing, and wants none of its
// goroutines to be left. The modes read the environment of the process, so they run one after the other.
func TestModesJoinTheirGoroutines(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(api.Close)
	directory := t.TempDir()
	if output, err := exec.Command("git", "init", "-q", directory).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := os.WriteFile(filepath.Join(directory, "a.yaml"), []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lease http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"kubesync","namespace":"kube-system","resourceVersion":"1"},`+
			`"spec":{"holderIdentity":"another","leaseDurationSeconds":3600,"renewTime":"2026-01-01T00:00:00.000000Z"}}`)
	}
	held := httptest.NewServer(lease)
	t.Cleanup(held.Close)
	t.Setenv("REPO", "file://"+directory)
	t.Setenv("VERSION_MODE", "worktree")
	t.Setenv("KUBECONFIG", os.DevNull)
	t.Setenv("LISTEN", "127.0.0.1:0")
	t.Setenv("INTERVAL", "1s")
	t.Setenv("COMMIT_STATUS", "1")
	t.Setenv("NOTIFY_URL", api.URL)
	for name, test := range map[string]struct {
		variables map[string]string
		code      int
	}{
		"daemon":                     {map[string]string{"KUBECTL_OPTIONS": "--server=" + api.URL}, exitOK},
		"daemon on standby":          {map[string]string{"KUBECTL_OPTIONS": "--server=" + held.URL}, exitOK},
		"once":                       {map[string]string{"ONCE": "1", "KUBECTL_OPTIONS": "--server=" + api.URL}, exitNotInSync},
		"dry run":                    {map[string]string{"DRYRUN": "1"}, exitOK},
		"dry run, once":              {map[string]string{"DRYRUN": "1", "ONCE": "1"}, exitOK},
		"dry run, cluster":           {map[string]string{"DRYRUN": "1", "KUBECTL_OPTIONS": "--server=" + api.URL}, exitOK},
		"dry run, cluster, the diff": {map[string]string{"DRYRUN": "diff", "ONCE": "1", "KUBECTL_OPTIONS": "--server=" + api.URL}, exitNotPlanned},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.variables {
				t.Setenv(variable, value)
			}
			settings, err := config.Load()
			if err != nil {
				t.Fatal(err)
			}
			before := goroutines()
			chosen, err := newMode(settings, zerolog.Nop())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if code := chosen.Run(ctx); code != test.code {
				t.Errorf("status %d, want %d", code, test.code)
			}
			for _, stack := range goroutines() {
				if !slices.Contains(before, stack) {
					t.Errorf("still running:\n%s", stack)
				}
			}
		})
	}
}

// goroutines returns the stacks of the goroutines that run code of kubesync, but for those of tests.
func goroutines() []string {
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		return []string{err.Error()}
	}
	var ours []string
	for stack := range strings.SplitSeq(text.String(), "\n\n") {
		if strings.Contains(stack, "github.com/kubesync/kubesync") && !strings.Contains(stack, "_test.go") {
			ours = append(ours, stack)
		}
	}
	return ours
}

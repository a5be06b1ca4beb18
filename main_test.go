package main

import (
	"bytes"
	"context"
	"log"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/klog/v2"
)

// The loggers of other libraries are the process's own, so this test is one and
// does not run beside others.
func TestForeignLogs(t *testing.T) {
	for level, wanted := range map[zerolog.Level]bool{zerolog.InfoLevel: false, zerolog.DebugLevel: true, zerolog.TraceLevel: true} {
		var lines bytes.Buffer
		routeForeignLogs(zerolog.New(&lines).Level(level))
		klog.Background().Error(nil, "an error of client-go")
		klog.FromContext(t.Context()).Info("news of client-go")
		log.Print("a line of the standard library")
		for _, verbosity := range []int{1, 4, 8, 10} {
			klog.Background().V(verbosity).Info("Response Body", "body", "hunter2")
		}
		text := lines.String()
		for _, line := range []string{"an error of client-go", "news of client-go", "a line of the standard library"} {
			if strings.Contains(text, line) != wanted {
				t.Errorf("level %s: %q in the log: %v, want %v", level, line, !wanted, wanted)
			}
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("level %s: the body of an answer is in the log", level)
		}
		if strings.Count(text, "\n") != strings.Count(text, `"level":"debug"`) {
			t.Errorf("level %s: not all is at debug level:\n%s", level, text)
		}
	}
}

// The signals go to the process of the test, so these do not run beside others.
func TestSignals(t *testing.T) {
	send := func(t *testing.T) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	never := func() bool { return false }
	t.Run("work that ends by itself has its own status", func(t *testing.T) {
		if code := untilStopped(func(context.Context) int { return 7 }, never); code != 7 {
			t.Errorf("status %d, want 7", code)
		}
	})
	t.Run("the first ends the context and the work is waited for", func(t *testing.T) {
		finished := false
		code := untilStopped(func(ctx context.Context) int {
			send(t)
			<-ctx.Done()
			if cause := context.Cause(ctx).Error(); !strings.Contains(cause, "terminated") {
				t.Errorf("the cause is %q, want the signal in it", cause)
			}
			time.Sleep(100 * time.Millisecond) // a write in flight
			finished = true
			return exitOK
		}, never)
		if code != exitOK || !finished {
			t.Errorf("status %d, finished %v", code, finished)
		}
	})
	t.Run("one that comes twice at once counts once", func(t *testing.T) {
		code := untilStopped(func(ctx context.Context) int {
			send(t)
			<-ctx.Done()
			send(t)
			time.Sleep(sameSignal / 2)
			return exitOK
		}, never)
		if code != exitOK {
			t.Errorf("status %d", code)
		}
	})
	t.Run("a second one ends the process at once", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		code := untilStopped(func(ctx context.Context) int {
			send(t)
			<-ctx.Done()
			time.Sleep(2 * sameSignal)
			send(t)
			<-release
			return exitOK
		}, never)
		if code != exitNotInSync {
			t.Errorf("status %d, want %d", code, exitNotInSync)
		}
	})
}

// A signal to poll that comes while the process is stopping is one too many, and must not
// end it: the Lease would stay held. The signals go to the process of the test.
func TestHangUpWhileStopping(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer onHangUp(ctx, func() {})()
	cancel()
	for range 20 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // until then a user may have stopped listening
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"version":     {[]string{"version"}, exitOK},
		"--version":   {[]string{"--version"}, exitOK},
		"help":        {[]string{"help"}, exitOK},
		"-h":          {[]string{"-h"}, exitOK},
		"unknown":     {[]string{"sync"}, exitConfiguration},
		"more than 1": {[]string{"version", "now"}, exitConfiguration},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if code := run(append([]string{"kubesync"}, test.args...)); code != test.code {
				t.Errorf("status %d, want %d", code, test.code)
			}
		})
	}
	if buildVersion() == "" {
		t.Error("there is no version")
	}
}

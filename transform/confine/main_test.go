package confine_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/kubesync/kubesync/transform"
	"github.com/kubesync/kubesync/transform/confine"
)

// TestMain lets the test binary be the helpers, as kubesync's binary is, and a hostile
// CMD and the daemon that runs it.
func TestMain(m *testing.M) {
	if code, ran := confine.Main(os.Args, transform.Helpers()); ran {
		// Not os.Exit, which with -cover prints a warning that would count as CMD's.
		syscall.Exit(code)
	}
	if name := os.Getenv(attackVariable); name != "" {
		syscall.Exit(attackMain(name))
	}
	if os.Getenv(daemonVariable) != "" {
		os.Exit(daemonMain())
	}
	os.Exit(m.Run())
}

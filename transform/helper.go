package transform

import (
	"os"

	"golang.org/x/sys/unix"
)

// self is the binary that runs: also after it was replaced on disk.
const self = "/proc/self/exe"

// stage is the hidden first argument with which the binary is started again to
// be one of the helpers that doc.go names.
type stage string

const (
	superviseStage stage = "kubesync:supervise"
	launchStage    stage = "kubesync:launch"
	kustomizeStage stage = "kubesync:kustomize"
)

// File descriptors of a helper, after stdin, stdout and stderr.
const (
	fromParent = 3
	toParent   = 4
)

// ConfinedMain is what the binary does when this package has started it as a
// helper. main calls it first, before it looks at its environment or starts
// anything, with its arguments (os.Args), and if ran is true exits with code.
// Tests that run CMD or build a kustomization call it in TestMain.
func ConfinedMain(args []string) (code int, ran bool) {
	if len(args) != 2 {
		return 0, false
	}
	var run func(in, out *os.File) int
	switch stage(args[1]) {
	case superviseStage:
		run = supervise
	case launchStage:
		run = launch
	case kustomizeStage:
		run = kustomizeHelper
	default:
		return 0, false
	}
	// What the helper starts must not inherit its connection to its parent.
	unix.CloseOnExec(fromParent)
	unix.CloseOnExec(toParent)
	in, out := os.NewFile(fromParent, "from parent"), os.NewFile(toParent, "to parent")
	return run(in, out), true
}

package transform

import (
	"fmt"
	"strings"
)

// SandboxMode says what happens to a CMD that the kernel cannot confine.
type SandboxMode int

const (
	// SandboxAuto, the default, confines CMD where the kernel has Landlock. Where it
	// has not, a system repository's CMD runs with a warning and an application
	// repository's is refused.
	SandboxAuto SandboxMode = iota
	// SandboxRequire refuses every CMD that cannot be confined.
	SandboxRequire
	// SandboxOff confines none.
	SandboxOff
)

// ParseSandboxMode parses a value of CMD_SANDBOX; empty is the default, auto.
func ParseSandboxMode(text string) (SandboxMode, error) {
	switch strings.ToLower(text) {
	case "", "auto":
		return SandboxAuto, nil
	case "require":
		return SandboxRequire, nil
	case "off":
		return SandboxOff, nil
	}
	return 0, fmt.Errorf("%q is none of auto, require and off", text)
}

// String returns the mode as CMD_SANDBOX spells it.
func (m SandboxMode) String() string {
	switch m {
	case SandboxAuto:
		return "auto"
	case SandboxRequire:
		return "require"
	case SandboxOff:
		return "off"
	}
	return fmt.Sprintf("SandboxMode(%d)", int(m))
}

// unprivileged starts every refusal of what only the system tier may do.
const unprivileged = "Unprivileged repo requires privilege"

// confinement decides whether CMD runs confined. An error means that it may not run,
// a warning that it runs although it should better be confined.
func (o Options) confinement(abi int) (confined bool, warning string, err error) {
	const lacks = "this kernel has no Landlock to confine it with"
	switch {
	case o.Sandbox == SandboxOff:
		return false, "", nil
	case abi > 0:
		return true, "", nil
	case !o.Privileged:
		return false, "", fmt.Errorf("%s: cmd %q: %s (a repository of the system tier may run it, or CMD_SANDBOX=off lets every repository)", unprivileged, o.Command, lacks)
	case o.Sandbox == SandboxRequire:
		return false, "", fmt.Errorf("CMD %q is refused: CMD_SANDBOX is require, and %s", o.Command, lacks)
	}
	return false, fmt.Sprintf("CMD %q runs unconfined: %s", o.Command, lacks), nil
}

package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Landlock does not look at the calls by which a process changes another one of its
// user: its resource limits (prlimit with RLIMIT_NOFILE 0 is as good as a kill), its
// scheduling and priority. A seccomp filter takes them away, as far as others are
// concerned. It also keeps away from the kernel's key rings, which a user's processes
// share, and from putting words into a terminal's mouth.

// forbidden is a system call that is refused with EPERM unless a condition holds.
type forbidden struct {
	// Numbers by architecture: x86-64, i386, arm64, arm.
	x86, i386, arm64, arm uint32
	// own is the argument that names a process, which must be 0, the caller itself;
	// -1 if the call is refused whatever its arguments.
	own int
	// user, unless 0, is a value of argument 0 that means all processes of the user.
	user uint32
	// request, unless 0, is the one value of argument 1 that is refused.
	request uint32
}

// forbiddenCalls lists what a confined program may not ask the kernel for.
func forbiddenCalls() []forbidden {
	return []forbidden{
		{x86: 302, i386: 340, arm64: 261, arm: 369, own: 0},                       // prlimit64
		{x86: 141, i386: 97, arm64: 140, arm: 97, own: 1, user: unix.PRIO_USER},   // setpriority
		{x86: 251, i386: 289, arm64: 30, arm: 314, own: 1, user: ioprioUser},      // ioprio_set
		{x86: 142, i386: 154, arm64: 118, arm: 154, own: 0},                       // sched_setparam
		{x86: 144, i386: 156, arm64: 119, arm: 156, own: 0},                       // sched_setscheduler
		{x86: 203, i386: 241, arm64: 122, arm: 241, own: 0},                       // sched_setaffinity
		{x86: 314, i386: 351, arm64: 274, arm: 380, own: 0},                       // sched_setattr
		{x86: 248, i386: 286, arm64: 217, arm: 309, own: -1},                      // add_key
		{x86: 249, i386: 287, arm64: 218, arm: 310, own: -1},                      // request_key
		{x86: 250, i386: 288, arm64: 219, arm: 311, own: -1},                      // keyctl
		{x86: 16, i386: 54, arm64: 29, arm: 54, own: -1, request: unix.TIOCSTI},   // ioctl
		{x86: 16, i386: 54, arm64: 29, arm: 54, own: -1, request: unix.TIOCLINUX}, // ioctl
	}
}

// Offsets in what the kernel shows a filter, struct seccomp_data. The arguments are 64
// bits wide; of each that counts here the kernel uses the lower half, which comes
// first on all of these architectures.
const (
	offsetNumber       = 0
	offsetArchitecture = 4
	offsetArguments    = 16
	sizeArgument       = 8
)

// ioprioUser is what unix.PRIO_USER is, for ioprio_set.
const ioprioUser = 3

// x32 marks the calls of another interface of x86-64, which no filter knows.
const x32 = 1 << 30

// forbidCalls gives the calling thread, and what it becomes, the filter. It must not
// be able to gain rights any more (which confine has seen to). On other architectures,
// and on a kernel without filters, there is none.
func forbidCalls() error {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil
	}
	program, err := callFilter()
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(program))
	for i, instruction := range program {
		filter[i] = unix.SockFilter{Code: instruction.Op, Jt: instruction.Jt, Jf: instruction.Jf, K: instruction.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if failed != 0 && failed != unix.EINVAL && failed != unix.ENOSYS {
		return fmt.Errorf("forbid system calls (seccomp): %w", failed)
	}
	return nil
}

// callFilter assembles the filter.
func callFilter() ([]bpf.RawInstruction, error) {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	var program []bpf.Instruction
	for _, family := range []struct {
		architecture uint32
		number       func(forbidden) uint32
	}{
		{unix.AUDIT_ARCH_X86_64, func(f forbidden) uint32 { return f.x86 }},
		{unix.AUDIT_ARCH_I386, func(f forbidden) uint32 { return f.i386 }},
		{unix.AUDIT_ARCH_AARCH64, func(f forbidden) uint32 { return f.arm64 }},
		{unix.AUDIT_ARCH_ARM, func(f forbidden) uint32 { return f.arm }},
	} {
		var body []bpf.Instruction
		if family.architecture == unix.AUDIT_ARCH_X86_64 {
			body = append(body, number(), bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1}, refuse)
		}
		for _, call := range forbiddenCalls() {
			body = append(body, call.refuse(family.number(call), refuse)...)
		}
		body = append(body, allow)
		program = append(program,
			bpf.LoadAbsolute{Off: offsetArchitecture, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: family.architecture, SkipTrue: 1},
			bpf.Jump{Skip: uint32(len(body))})
		program = append(program, body...)
	}
	assembled, err := bpf.Assemble(append(program, refuse)) // of an architecture that no one knows
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	return assembled, nil
}

// refuse returns the instructions that refuse the call and fall through otherwise.
func (f forbidden) refuse(call uint32, refuse bpf.Instruction) []bpf.Instruction {
	var body []bpf.Instruction
	switch {
	case f.request != 0:
		body = []bpf.Instruction{argument(1), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: f.request, SkipTrue: 1}, refuse}
	case f.own < 0:
		body = []bpf.Instruction{refuse}
	default:
		body = []bpf.Instruction{argument(f.own), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuse}
		if f.user != 0 {
			body = append(body, argument(0), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: f.user, SkipTrue: 1}, refuse)
		}
	}
	return append([]bpf.Instruction{
		number(), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(body))},
	}, body...)
}

func number() bpf.Instruction { return bpf.LoadAbsolute{Off: offsetNumber, Size: 4} }

func argument(i int) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetArguments + sizeArgument*uint32(i), Size: 4}
}

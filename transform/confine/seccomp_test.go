package confine

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What the filter says of calls by all the ways that there are into a kernel.
func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	program, err := callFilter()
	if err != nil {
		t.Fatal(err)
	}
	instructions, all := bpf.Disassemble(program)
	if !all {
		t.Fatal("not all of the filter is understood")
	}
	machine, err := bpf.NewVM(instructions)
	if err != nil {
		t.Fatal(err)
	}
	const (
		x86, i386 = unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_I386
		arm64     = unix.AUDIT_ARCH_AARCH64
		arm       = unix.AUDIT_ARCH_ARM
	)
	for name, test := range map[string]struct {
		architecture, call uint32
		arguments          [3]uint32
		allowed            bool
	}{
		"getpid":                        {x86, 39, [3]uint32{}, true},
		"getpid of x32":                 {x86, x32 | 39, [3]uint32{}, false},
		"unknown architecture":          {unix.AUDIT_ARCH_RISCV64, 0, [3]uint32{}, false},
		"prlimit of itself":             {x86, 302, [3]uint32{0, 7}, true},
		"prlimit of another":            {x86, 302, [3]uint32{1, 7}, false},
		"prlimit of another, 32 bits":   {i386, 340, [3]uint32{1, 7}, false},
		"prlimit of itself, 32 bits":    {i386, 340, [3]uint32{0, 7}, true},
		"another call of that number":   {i386, 302, [3]uint32{1, 7}, true},
		"prlimit of another, arm64":     {arm64, 261, [3]uint32{1, 7}, false},
		"prlimit of another, arm":       {arm, 369, [3]uint32{1, 7}, false},
		"setpriority of itself":         {x86, 141, [3]uint32{unix.PRIO_PROCESS, 0, 5}, true},
		"setpriority of its group":      {x86, 141, [3]uint32{unix.PRIO_PGRP, 0, 5}, true},
		"setpriority of another":        {x86, 141, [3]uint32{unix.PRIO_PROCESS, 1, 5}, false},
		"setpriority of its user":       {x86, 141, [3]uint32{unix.PRIO_USER, 0, 5}, false},
		"ioprio_set of its user":        {x86, 251, [3]uint32{3, 0, 5}, false},
		"ioprio_set of another":         {arm64, 30, [3]uint32{1, 7, 5}, false},
		"sched_setscheduler of another": {arm64, 119, [3]uint32{1}, false},
		"sched_setattr of another":      {x86, 314, [3]uint32{1}, false},
		"sched_setparam of another":     {x86, 142, [3]uint32{1}, false},
		"sched_setaffinity of another":  {x86, 203, [3]uint32{1}, false},
		"sched_setaffinity of itself":   {x86, 203, [3]uint32{0}, true},
		"keyctl":                        {x86, 250, [3]uint32{}, false},
		"add_key, 32 bits":              {i386, 286, [3]uint32{}, false},
		"request_key, arm":              {arm, 310, [3]uint32{}, false},
		"TIOCSTI":                       {x86, 16, [3]uint32{0, unix.TIOCSTI}, false},
		"TIOCSTI, arm64":                {arm64, 29, [3]uint32{0, unix.TIOCSTI}, false},
		"TIOCLINUX":                     {x86, 16, [3]uint32{0, unix.TIOCLINUX}, false},
		"another ioctl":                 {x86, 16, [3]uint32{0, unix.TIOCGWINSZ}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The machine reads as networks do, whatever the processor.
			data := make([]byte, offsetArguments+6*sizeArgument)
			binary.BigEndian.PutUint32(data[offsetNumber:], test.call)
			binary.BigEndian.PutUint32(data[offsetArchitecture:], test.architecture)
			for i, argument := range test.arguments {
				binary.BigEndian.PutUint32(data[offsetArguments+i*sizeArgument:], argument)
			}
			verdict, err := machine.Run(data)
			if err != nil {
				t.Fatal(err)
			}
			if allowed := uint32(verdict) == unix.SECCOMP_RET_ALLOW; allowed != test.allowed {
				t.Errorf("verdict %#x", verdict)
			}
		})
	}
}

// Package confine runs a user's command so that neither it nor anything it starts reads
// a secret, changes another process, or takes more of the machine than it may.
//
// # Flow
//
// The daemon does not start the program itself. It starts its own binary again, twice:
//
//	daemon ── supervisor ── program ── whatever the program starts
//
// Step by step:
//
//  1. [Open] finds or makes a [Workspace]: a directory with INDIR, OUTDIR and TMPDIR that
//     a lock gives to one repository of one process. Before a run [Workspace.Prepare]
//     makes OUTDIR and TMPDIR anew, and the caller restores INDIR.
//  2. [Workspace.Reach] says what the program may read and write, [Workspace.Run] starts
//     the supervisor (startHelper) and gives it the [Program] over a pipe.
//  3. [Main], which main calls first, is where the binary becomes the supervisor
//     (supervise): orphans fall to it ("child subreaper"), so a process that has left the
//     program's group and session is found too. It starts the binary again (launch).
//  4. launch limits itself (allowance.impose), confines itself (Reach.confine,
//     forbidCalls) and then becomes the program (become).
//  5. The supervisor adds up what the program and all that it starts use (watch). When the
//     program has ended, or uses too much, or the daemon closes the pipe or dies, it kills
//     all its descendants (killer.all), ends, and reports how the program ended.
//  6. [Output] logs what is printed. [Workspace.Check] says whether the workspace is still
//     the one that was locked; [Workspace.Clean] removes what the run left.
//
// Helpers of other packages, which do not become a program, use [Talk], [LimitMemory]
// and [Isolate].
//
// # Safety rules
//
//   - A helper gets no variable of the daemon and no open file but its pipes. The daemon is
//     not dumpable ([ProtectProcess]): no one but root reads its memory through /proc.
//   - Under Landlock the program reads INDIR and the system's program and library
//     directories, and writes INDIR, OUTDIR and TMPDIR (reach.go). If Landlock is there but
//     cannot be applied, nothing runs.
//   - A seccomp filter refuses what Landlock does not look at: limits, scheduling and
//     priority of other processes, key rings, typing into a terminal. There is no terminal.
//   - Memory, processes, disk and output are bounded for all processes together (watch.go),
//     single files and core dumps by the kernel (impose.go). The program stands back behind
//     the daemon, and is the kernel's first victim when memory is short.
//   - What is in the place of a workspace that was lost (a link, a directory of another
//     user) is neither used nor changed. A removal follows no link.
//
// # Limits
//
// The network stays open. Landlock does not cover mode, owner and times of files; before
// ABI 3 (Linux 6.2) not truncation, before ABI 6 (6.12) not signals, and processes that each
// start another one and end can outlive the run; before ABI 9 not sockets that are files.
// For a daemon that runs as root Landlock alone stands before it. Memory that belongs to no
// process is not counted, nameless files only when the disk is nearly full. RLIMIT_NPROC is
// not used: it counts the processes of all pods of a node that run as the same user.
//
// The package needs Linux, with /proc mounted.
package confine

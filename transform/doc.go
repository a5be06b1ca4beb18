// Package transform turns the files of a revision into the manifests that are
// to be applied: files in, files out.
//
// # Flow
//
// [Transform.Run] first looks for CMD, the user's own program. If it is there,
// the revision is checked out into INDIR, CMD runs, and only what it leaves in
// OUTDIR counts. If there is no CMD, or it does not exist in this revision, the
// files come from YMLDIR, from kubernetes/ or from the repository's root, and
// nothing is written to disk. In the chosen directory the manifests are the
// .yaml, .yml and .json files, hidden ones and what .kubesyncignore names left
// out; a directory that is a kustomization is built instead.
//
// The result is an [io/fs.FS] that holds exactly the manifests. What comes
// straight from git is read when it is asked for, and its FileInfo keeps the
// hash that git knows it by (before that, the files that are picked, or that a
// kustomization refers to, are fetched together, if the revision's files have to
// be); what CMD or kustomize made is held in memory and
// hashed the same way, so equal content always has the equal hash.
//
// # CMD has no shell
//
// CMD is split into words, as bash splits the value of an unquoted variable:
// white space separates, file name patterns are expanded. On top of that quotes
// and backslashes are understood, and $VAR and ${VAR}. Everything else that a
// shell would act on (pipes, redirections, $(…), several commands …) is refused
// when the configuration is read, with the advice to put it into a script:
// passing it on as text would do something else than what was meant.
//
// # The processes
//
// The daemon does not start CMD itself. It starts its own binary again, which
// becomes the supervisor; the supervisor starts the binary once more, which
// confines itself and then becomes CMD:
//
//	daemon ── supervisor ── CMD ── whatever CMD starts
//
// The supervisor is what orphans fall to ("child subreaper"), so also a process
// that has left CMD's process group and session is found. When CMD has ended,
// or its time is up, or the daemon is gone (they share a pipe), it kills all its
// descendants and only then ends. [ConfinedMain] is the entry of these helpers
// and has to be the first thing that main calls. Neither helper is handed
// anything but what CMD may know: no variable of the daemon, no secret.
//
// # Safety rules
//
//   - CMD's environment lacks kubesync's own variables, KUBERNETES_*, proxy URLs
//     with a password in them, and what CMD_ENV_DENY names.
//   - The daemon makes itself non-dumpable ([ProtectProcess]), so that no one
//     but root reads its environment, memory or open files through /proc.
//   - Under Landlock CMD reads INDIR and the system's program and library
//     directories, writes INDIR, OUTDIR and TMPDIR, and nothing else. The list
//     is in sandbox.go. Without Landlock an application repository's CMD does
//     not run. If Landlock is there but cannot be applied, CMD does not run
//     either.
//   - A seccomp filter keeps CMD from changing the resource limits, scheduling and priority
//     of other processes of its user, which Landlock does not look at, from the kernel's key
//     rings, and from typing into a terminal. Nothing that the daemon starts has a terminal.
//   - What CMD uses is bounded together with all that it starts: memory, processes, disk,
//     output (watch.go); single files and core dumps by the kernel (impose.go). It stands
//     back behind the daemon, and is the kernel's first victim when memory is short. So is
//     kustomize.
//   - INDIR is restored before every run, by who checks out, who must not follow
//     the links that CMD may have left there: the daemon has more rights than CMD.
//     OUTDIR and TMPDIR are made anew.
//   - The three are in a directory below the daemon's TMPDIR, which a lock in it gives to one
//     repository of one process. Whoever tidies up temporary files may remove it, or the
//     lock alone. Before and after each run it is looked at: what was removed is made again
//     for the next run, and what is in its place (a link, a directory of others) is neither
//     used nor changed. What a run left that lost its directory does not count. If TMPDIR
//     itself is missing, that is an error of the sync and not of the configuration: a repo
//     without CMD needs none, and a volume may be mounted later.
//   - Symbolic links are resolved by this package, never by the kernel, and only
//     to targets inside the repository (for OUTDIR: inside INDIR and OUTDIR).
//   - kustomize runs in a helper of its own, without files, network and programs:
//     its loader, which fetches what looks like a URL, cannot be configured not
//     to, and it holds global state. The helper asks the daemon for each file.
//
// # Limits
//
// CMD may use the network, and what it can reach there (for example a cloud's
// metadata service) is not for this package to decide. Landlock covers the content
// of files, not their mode, owner and times, which CMD can change outside of its
// directories where its user id may. Before Landlock ABI 3
// (Linux 6.2) files can be truncated that cannot be opened for writing, before ABI 6
// (Linux 6.12) signals can be sent to processes outside, the daemon included, and
// processes that each start another one and end can outlive the run,
// and before ABI 9 a socket file that the user id may write to, can be
// connected to. A daemon that runs as root is protected by Landlock only, not by
// being non-dumpable.
//
// Memory that belongs to no process (files in memory that none has mapped) is not
// counted, and files that have no name any more only when the disk is nearly full.
// RLIMIT_NPROC is not used: it would count the processes of all pods of a node that run
// as the same user. CMD_SANDBOX=off leaves the bounds on what CMD uses, and no other rule.
//
// The package needs Linux, with /proc mounted.
package transform

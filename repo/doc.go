// Package repo turns "this git repository, in this version mode" into a
// revision and the files of that revision.
//
// # Flow
//
// [Repo.Resolve] polls: it lists the branches and tags that the [Version] chooses
// from (one request), chooses a commit, and only if that is not the commit it
// already holds gets that commit, at depth 1 and into memory. [Repo.Files] reads
// the revision as an [io/fs.FS] straight from git's objects, and fetches what is not
// held; [Repo.Checkout] writes it out as a work tree with a .git for those who need
// one. Nothing else touches the disk, so there is nothing to recover after a crash.
//
// Where a repository is read from is a source: a server (over http, https or
// ssh) or a directory. A source lists refs, tells the commits of a history and
// gets the objects of one commit; which commit it shall be is decided by
// functions of refs and commits alone (choose.go). What carries requests to a server
// is a wire; who knows what to say is a speaker, of protocol version 2 (v2.go) if
// the server does, else 0 (v0.go).
//
// [Repo.Descends] reports whether one commit comes before another. True has a proof: a
// chain of commits, each checked against its hash, of which each names the next as its
// parent. Of the server it asks for commits alone, first for those that come after the
// ancestor, and only if that leaves a question for the whole history.
//
// # Partial fetches
//
// From a server that speaks version 2 and takes filters, the cost follows the
// directory in use and not the repository. A new revision is
//
//  1. the refs in scope. A prefix is all that a server can be given, so refs/heads/a
//     brings refs/heads/ab too; the exact name is taken. HEAD is asked for only
//     where the default branch is to be found, everything only for an error that
//     says what there is;
//  2. the commit and the directory at its root;
//  3. each directory on the way to the one in use, by its hash;
//  4. the files that are said to be needed ([Repo.Files] has the interface), by
//     their hashes and in one request, less those that the revision before held.
//
// What a server sends is known by the hash of its content, and is only taken for
// what it was asked for if that fits. tag:latest and short hashes need the commits
// alone. A checkout needs everything: the first is one request for the whole commit,
// the next ones ask for what is new.
//
// What a server turned out to do is remembered ("habits"), so that a poll which finds
// nothing new is one request. It may change its mind: an answer that does not fit to
// what is remembered is a reason to ask it anew, at once. A redirect that is not
// permanent is not remembered. One that filters only some way is asked the next
// lesser way; one that filters none, or does not hand out what is no commit, gives
// the whole commit at depth 1. If a server ignores a filter, what it sent too much is
// used. One that says when to come back (Retry-After) is left alone until then, for
// a quarter of an hour at most.
//
// Whoever wants to know of requests and bytes gives a [Meter], which hears of them at
// the connection, whatever is spoken over it.
//
// # Where objects live
//
//   - From a server, in memory: packs, compressed as they came, with an index. Each is
//     checked to be whole (its checksum; of a whole commit, that every object is
//     there) before it is used, so a fetch that breaks off leaves the last good
//     revision as it was. When the revision changes, a store of packs goes on to use
//     what the one before held until the next poll. By then the new revision was
//     used once, and what nobody asked for goes: packs that hold little else than
//     that are dropped, and the rest copied; others stay as they are, so at most
//     half of what is held is not needed.
//   - file://: in place, opened read-only: no lock, no gc, no ref is ever
//     written there. Each file that holds refs is read once a poll, packed-refs too, so
//     that a poll takes time in proportion to the refs. Objects that are pruned from such a repository are gone
//     from a revision that needs them, as they would be for git.
//   - worktree: the files as they lie on disk. The revision's ID is the hash of
//     the tree that git would make of them; a file that changes while it is
//     being used is noticed by its hash, and is an error until the next poll.
//
// # Rules of safety
//
// Credentials are for the URL's own scheme, host and port. A redirect within
// these keeps them, one that leaves them loses them for good, one from https to
// http is refused. An ssh host key that is not in the known hosts file is an
// error that tells what to do, never accepted. CA files and directories replace
// the system's roots, as they do in git.
//
// No error, log line or printed value of this package holds a password: a [URL]
// prints without its credentials and [Credentials] print masked; a server's own
// words are only repeated after the secrets of the request were taken out.
//
// What git's tree objects claim is not trusted: names such as "..", ".git" or
// one with a slash in it make the revision an error, and a checkout cannot write
// or delete outside its directory even if the script that used it last left
// symlinks behind ([os.Root]).
//
// What a server or a repository says is bounded in size, number and depth before it is
// held ([limits]), a server that falls silent is given up, and of a text that others
// wrote no control character gets into an error or a log. Packs are read by this
// package, with go-git's scanner: an object is inflated when its size is known to be
// allowed, and a large file only while it is read.
//
// # Not done
//
// Submodules are not followed: each is a directory that says so when opened.
// Git LFS pointers stay the text they are in git, and what .gitattributes says
// (line ends, filters, idents) is not applied: the files are the blobs, byte by
// byte.
//
// # Concurrency
//
// Any number of Repos work side by side and share nothing. One Repo is for one
// goroutine at a time; the FS it handed out may be read by any number, also
// while the Repo goes on and after it moved to another revision. They share the way
// to the server: one request at a time, the poll's or theirs, each bounded by
// TIMEOUT and by the context it was given. A connection closes itself when it was
// idle for ten seconds, so a Repo needs no closing. An FS can be read as long as
// anybody likes; what it does not hold can be fetched as long as its context lasts
// and the server has it.
package repo

// Package repo turns "this git repository, in this version mode" into a
// revision and the files of that revision.
//
// # Flow
//
// [Repo.Resolve] polls: it lists the repository's branches and tags (one
// request), chooses a commit by the [Version], and only if that is not the
// commit it already holds gets that commit's objects, at depth 1 and into
// memory. [Repo.Files] reads the revision as an [io/fs.FS] straight from these
// objects; [Repo.Checkout] writes it out as a work tree with a .git for those
// who need one. Nothing else touches the disk, so there is nothing to recover
// after a crash.
//
// Where a repository is read from is a source: a server (over http, https or
// ssh) or a directory. A source lists refs, tells the commits of a history and
// gets the objects of one commit; which commit it shall be is decided by
// functions of refs and commits alone (choose.go). A better way to fetch from
// some servers is another implementation of the two small steps of that interface.
//
// # Where objects live
//
//   - From a server: the pack it sent, compressed as it came, with an index, in
//     memory. It is checked to be whole (its checksum, every object of the
//     commit) before it takes the place of the last one, so a fetch that breaks
//     off leaves the last good revision as it was. When the revision changes the
//     old objects are garbage as soon as the last FS over them is.
//   - file://: in place, opened read-only: no lock, no gc, no ref is ever
//     written there. Objects that are pruned from such a repository are gone
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
// while the Repo goes on and after it moved to another revision.
package repo

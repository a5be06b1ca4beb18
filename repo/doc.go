// Package repo turns "this git repository, in this version mode" into a revision and the
// files of that revision.
//
// # Flow
//
//  1. [ParseURL] and [ParseVersion] read the configuration, [New] prepares a [Repo].
//  2. [Repo.Resolve] polls: it lists the branches and tags that the [Version] chooses from
//     (one request), chooses a commit (choose.go), and fetches it if it is another one than
//     before. A server is read through repo/wire, a directory in place (local.go,
//     localrefs.go), files without git as they lie on disk (worktree.go).
//  3. [Repo.Files] reads the revision as an [io/fs.FS] from git's objects. What is not held
//     is fetched (store.go): the directories on the way to the one in use, and the files
//     that are needed, in one request, less those that the revision before held.
//  4. [Repo.Checkout] writes it as a work tree with a .git (checkout.go, dotgit.go). This
//     alone touches the disk, so there is nothing to recover after a crash.
//  5. [Repo.Descends] reports whether one commit is an ancestor of another (ancestry.go). It
//     proves it by a chain of commits, each checked against its hash, and fetches commits
//     alone: first those after the ancestor, then the whole history.
//  6. [Push.Concerns] reports whether a push may change what a version selects.
//
// Packages below: repo/pack reads and writes git's objects, repo/refs has what there is to
// choose from, repo/wire speaks to servers. They know neither versions nor files. wire has
// a package of its own although it exports some twenty names for one user: nothing in it
// can reach a Repo, and nothing here can skip a turn or a limit of the connection.
//
// Objects of a server are held in memory, as packs; when the revision changes, what it does
// not use goes at the next poll. A user that does not look again into a directory that is the
// same says so (Keep), and what it fetched below it stays, unread. Objects that are pruned from a directory are gone from a
// revision that needs them, as they are for git.
//
// # Safety rules
//
//   - Credentials are sent to the URL's own scheme, host and port. No error, log line or
//     printed value holds a password: a [URL] prints without, [Credentials] print masked.
//   - A fetch that breaks off, or is not whole, leaves the last good revision as it was.
//   - Names in git's trees are not trusted: "..", ".git" or a slash make the revision an
//     error. A checkout writes and deletes through [os.Root], whatever a script left there.
//   - A repository on disk is opened read-only: no lock, no gc, no ref is written.
//   - What a server or a repository says is bounded in size, number and depth before it is
//     held ([limits]); no control character of it gets into an error or a log.
//   - Where master was synced once ([Options.LastRef]), no other default branch is followed.
//
// # Not done
//
// Submodules are not followed: each is a directory that says so when opened. Git LFS
// pointers stay text, and .gitattributes is not applied. A repository on disk that borrows
// objects from another one (alternates) is refused.
//
// # Concurrency
//
// Any number of Repos work side by side and share nothing. One Repo is for one goroutine at
// a time. An FS that it handed out is for any number, also after the Repo moved on: what it
// does not hold can be fetched as long as its context lasts and the server has it.
package repo

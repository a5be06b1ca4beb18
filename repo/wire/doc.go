// Package wire reads repositories from git servers, over http, https and ssh, in versions
// 2 and 0 of git's protocol.
//
// # Flow
//
//  1. [New] prepares a [Server]. [Server.Poll] connects to a [Target] and lends its
//     [Protocol]; [Server.Use] lends it again between polls. One at a time uses a server
//     (server.go); a connection that is idle for ten seconds closes itself.
//  2. A transport (http.go, ssh.go) greets the server, which answers with its version:
//     2 (v2.go, packets.go) or 0 (v0.go).
//  3. [Protocol] lists refs, and fetches a commit, the past of commits, or objects by their
//     hashes, as packs (repo/pack).
//  4. An error is put in words for a person, with what to do (reason.go).
//
// A prefix is all that a version 2 server can be given: refs/heads/a brings refs/heads/ab
// too. A server that takes filters leaves out what is not asked for. One that refuses a
// filter is asked the next lesser way, and one that takes none gives the whole commit. What
// a server turned out to support is remembered, so that a poll without news is one request;
// an answer that does not fit is a reason to ask anew, at once. A redirect that is not
// permanent is not remembered. A server that says when to come back (Retry-After) is left
// alone until then, for a quarter of an hour at most.
//
// # Safety rules
//
//   - Credentials are for the target's own scheme, host and port. A redirect within these
//     keeps them, one that leaves them loses them for good, one from https to http is
//     refused.
//   - An ssh host key that is not in the known hosts file is an error that says what to do,
//     never accepted. CA files replace the system's roots, as they do in git.
//   - What a server sends is bounded before it is held, and a server that falls silent is
//     given up after a minute.
package wire

// Package pack reads git's objects within limits, and keeps those of a server in memory.
//
// # Flow
//
//  1. An answer of a server is written to [Chunks]. [New] verifies the checksum, reads each
//     object, puts deltas together (index.go, delta.go), and indexes them as a [Pack].
//  2. [ReadCommit], [ReadTree], [ReadBlob] and [ReadLink] read objects of any [Objects],
//     a pack among them. [WalkTrees] visits all of a revision.
//  3. [CheckWhole] finds what a server left out of a commit.
//  4. [OfCommit] and [Write] make a pack of objects from elsewhere, for a checkout's .git;
//     [Pack.Index] is the file that git keeps beside it.
//
// # Safety rules
//
//   - An object is known by the hash of its content, which is computed here.
//   - An object is inflated when its size is known to be allowed, a large file only while
//     it is read. What all of a pack inflates to, and how many objects one is put together
//     from, are bounded.
//   - A name in a tree that leads out of it, or into a .git, is an error.
package pack

// Package claims knows which repos of one process declare which object, and when each repo
// was last read. It reads and writes nothing but its own memory.
//
//  1. Declare says what a repo declares from now on. The first repo to declare an object holds
//     it, or the one that has the live object already; the others wait for it. Declare returns
//     what is held by others, and the repos that hold something now because this one let it go.
//  2. Read notes that a repo's manifests were read and checked, and of which poll.
//  3. Unread names the repos that were not read since some moment, and Forget a repo that ended.
//
// What this is for:
//   - An object is written by one repo at a time, and changes hands without being deleted.
//   - An object that leaves one repo may be on its way to another. Nothing is deleted before
//     Unread is empty since it was found to leave, and while Holder names a repo.
package claims

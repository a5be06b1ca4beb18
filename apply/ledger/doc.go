// Package ledger keeps what one set knows of each object, from its own writes and from what
// earlier processes recorded.
//
//  1. [Ledger.Declare] makes the objects of a plan those that the set declares. What is known of
//     the ones that stay is kept; of the others a proof of an earlier process may say it.
//     [Ledger.Change] is for a revision that declares the same objects with other content.
//  2. Whoever writes an object holds its [Entry] ([Entry.Begin], [Ledger.End]), and notes the
//     answer with [Ledger.Wrote].
//  3. An event goes to [Ledger.Saw], which compares it with what was sent ([Condition]) and returns
//     drift. [Ledger.Drifted] says whether it is still to be corrected when its turn comes.
//  4. [Ledger.Members], [Ledger.Proofs] and [Ledger.Finished] are what the set's parent records;
//     [Ledger.ReadRecord] and [Ledger.Declare] read it back.
//
// Safety rules:
//
//   - Only the answer to a write of ours puts a UID on the record, and nothing is pruned that is
//     not on it. A list that lacks an object takes nothing off it.
//   - A proof is taken off before other content is sent, so that a crash leaves objects without
//     proof and never with a wrong one. Secrets have none.
//   - Ownership is compared, not values: an entry that cannot be read is equal to nothing.
//   - One goroutine at a time writes an object. An event that comes in meanwhile is looked at when
//     the answer is there.
//   - What is known of an object outlasts the time in which it is pending: a Job that has run does
//     not run again because its Namespace came back.
//
// There is no cluster in here, and no clock: times are given.
package ledger

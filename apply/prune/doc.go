// Package prune decides what may be deleted. It is pure: it takes what was found out and
// returns a verdict with its reason, and knows neither cluster nor clock. Package apply
// finds out, asks here, and does what it is allowed to.
//
// # The proofs of a deletion
//
//  1. The object is the set's own: [Ownership]. It carries the set's label, an entry in
//     managedFields that an apply of kubesync's leaves, and its UID is in the set's
//     [Record], which only the answers to the set's own writes fill. Labels and
//     managedFields can be copied, by a backup tool for example; a UID cannot be had twice.
//  2. Nothing makes the prune as a whole questionable: [Hold.Reasons].
//  3. No data is lost with it: package apply asks the cluster, [Contents] judges what a
//     Namespace still holds.
//
// What 2 and 3 hold needs an approval, and so does what fails 1 for want of a record.
//
// # Approvals
//
// An approval is for one revision, and for what a person could know of it:
//
//   - A trailer in a commit's message counts for the step for which it was written:
//     [Step.Void] says why it does not. The revision applied last has to be an ancestor
//     of that commit. A rollback, a force-push, another mode, a tag that moves or a parent
//     that a user deleted make another step of it. It counts once.
//   - An annotation names the revision and what goes: their number, a hash of them, or
//     single objects: [Approval].
//
// What was approved is recorded by UID before the first object is deleted, so that a
// prune that was interrupted goes on, with these objects and no others.
package prune

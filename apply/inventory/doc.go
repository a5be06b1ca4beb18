// Package inventory finds the live objects that carry an apply set's label, for the plan of a
// set: by lists, or by watches that are kept open.
//
//  1. [Lister.List] lists every kind in a [Scope], where the cluster is not being watched.
//  2. A [Tracker] follows every kind that some set uses: one watch a kind, whatever the number
//     of sets. [Tracker.Use] says which kinds a set uses; [Tracker.Look] waits until what there
//     is of them is known.
//  3. Both return an [Inventory] of what matters to the set, by its [Interest]: its own members,
//     and those objects of others that it declares.
//  4. [Tracker.Seen] and [Tracker.ChangedSince] say which of the set's members have changed between
//     two plans; it is not known across a new list, or after too many changes.
//  5. [Watches] runs the watches, and reports as [Blind] what cannot be seen at the moment.
//
// Safety rules:
//
//   - A kind that could not be looked at is in Inventory.Blind, and a namespace that is closed to
//     the set in Inventory.Unseen. Nothing is known of what is there; it is not gone.
//   - What is seen counts only while its watch is current. What was known of a kind that is
//     served in another version by now is given up, and whoever uses it looks again.
//   - Whoever could not see a kind is woken when it is seen again, whichever of the two is noted
//     first.
package inventory

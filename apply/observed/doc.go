// Package observed reduces live objects to what a sync needs of them: whose they are, what
// kubesync has applied to them, and how they are. It sends nothing.
//
//  1. [Reader] and [NewMember] make a [Member] of a live object or its metadata.
//  2. [Entry] is what kubesync has applied, from managedFields, in one form whatever the order of
//     the API server. Equal entries are one value in memory.
//  3. Package health judges an object when it is reduced; [Member.AssessedHealth] says what that
//     judgement counts for.
//  4. [ClaimsPatch] settles the entries of managedFields by which a field that leaves git would
//     stay in the object.
//
// Safety rules:
//   - An entry that cannot be read proves nothing: the object is not ours to delete.
//   - A condition compares ownership, not values. Status, defaults and the fields of other
//     managers are no drift.
//   - The entry before-first-apply names no writer. It is given up, never made ours: else the next
//     apply would remove fields that others rely on.
package observed

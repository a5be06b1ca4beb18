// Package parent is the ConfigMap kubesync-<repo>, the parent of an apply set (KEP-3659): what a
// set remembers across restarts. It sends nothing but the list of [Records].
//
//  1. [Check] refuses a ConfigMap that is not the set's own.
//  2. A [Parent] is read by [Parent.Data], [Parent.Kinds] and so on; one that is missing, or was
//     edited, says nothing.
//  3. [Parent.Next] makes the parent that is to be written; [Parent.Says] that no write is needed.
//  4. [Records] reads what all parents say, for commands that have no daemon to ask.
//
// Safety rules:
//
//   - The parent names every kind and namespace before anything is written there.
//   - What a person wrote on it stays: only what was used up of an approval is taken off, and a
//     request to delete the set of a repo that the configuration names.
package parent

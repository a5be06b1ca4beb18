// Package kube asks one API server and judges its answers. It knows nothing of repos, sets
// and plans.
//
//  1. [Discover] asks which kinds are served; [Kinds] answers from that snapshot.
//  2. A [Client] sends requests under one identity: Apply, DryRun, Patch, Get, ListMetadata,
//     Delete. Apply and Patch return metadata alone, of Jobs the whole object.
//  3. [Client.FollowMetadata], [Client.FollowObjects] and [TypedResource] are what package
//     follow lists and watches.
//  4. [ManifestError], [ImmutableFields], [LacksKind], [LacksNamespace], [NotServed] and
//     [DoesNotExist] classify an error; [Explain] and [Webhooks.Blame] add what to do.
//
// # Safety rules
//
//   - An answer about another object than the one that was asked for is an error (CheckName,
//     CheckUID): what is deleted, remembered and compared is taken from answers.
//   - Discovery without what every API server serves is an error, and so is a list without a
//     version, with other objects than those asked for, or that never ends.
//   - A 404 that names no object says nothing about an object: the kind may not be served.
//   - Delete has the uid and, if known, the resourceVersion as preconditions.
//   - The values of a Secret are masked in what the API server says of it (WithoutSecrets).
//   - A null is sent as it is, and left out only where the API server refuses it (nulls.go).
package kube

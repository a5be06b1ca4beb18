// Package apply keeps a cluster in sync with a repo's manifests. A [Cluster] is what all
// repos share at one API server, a [Set] is one repo's objects. Package manifest reads and
// checks files, kube asks and watches the API server, inventory finds what is there, ledger
// keeps what is known of each object, parent is what outlasts the process, and prune decides
// what may be deleted. What is left here is one state machine.
//
//  1. [Set.Plan] loads and checks the files, reads the set's parent (readParent), finds the
//     live objects of the kinds in use (Plan.survey) and what has left the set (findLeaving).
//     It writes nothing, and needs watches ([Cluster.Watch]) or lists (package inventory). Where
//     only contents change it builds on the last sync, and looks at nothing else (Plan.buildOn).
//  2. [Set.Apply] widens the parent, keeps the RoleBindings of the application tier, writes
//     the objects step by step (applySteps, writer.write, sending.do), prunes (pruning.rest) and
//     records the result in the parent. [Set.DryRun] goes the same way and writes nothing.
//  3. Between syncs an event goes from the tracker to Set.consider, and drift through the
//     corrector to correction.correct, which sends what the last sync sent.
//
// The parent is the ConfigMap kubesync-<name> of KEP-3659. It names every kind and namespace
// before anything is written there, so that a later sync finds what a crash leaves. Of each
// object a set remembers the hash of what it sent, the uid, and its entry in managedFields;
// proofs of these in the parent (package ledger) let the next process skip unchanged objects.
//
// # Writing
//
//   - Objects are sent by forced server-side apply, unread: the answer reports whether the
//     object is new, is being deleted, or has fields of client-side appliers (observed.ClaimsPatch).
//   - One goroutine at a time writes an object, sync or correction.
//   - An event with another entry of ours is drift. Entries are compared as sets of fields;
//     one that cannot be read is equal to nothing and proves nothing (observed.Entry).
//   - What waits for a Namespace, CRD or finalizer is pending, and the rest is synced; the
//     event that ends the wait starts the next sync (dying.go, newkinds.go). Objects of a
//     kind that cannot be looked at wait too, and none of that kind is pruned.
//
// # What a deletion needs
//
//   - A plan: the revision was fetched, transformed, loaded and checked without error.
//   - Proof that the object is the set's own: its label, an Apply entry of kubesync that can
//     be read, and its UID on the set's record, which only answers to our writes fill.
//   - No declaration by this set or another one of this daemon, each of which was polled and
//     loaded since the object left (handover.go).
//   - No owner, no annotation against it, a namespace that we may write in (neverDeleted).
//   - A look at the object just before. Its uid and resourceVersion are preconditions.
//   - No change since the plan: just before each DELETE the claims of all repos are looked
//     at again (postponed), and an unlisted set is still unlisted (deletionRevoked).
//   - Approval, where an object is not as declared, too much goes or the number is unknown,
//     the source of the manifests changed (source.go), or data is lost (guard.go).
//
// The order is the reverse of applying: Namespaces last, after a look at everything in them;
// webhook configurations and APIServices before anything is applied (pruning.first). An
// object is pruned when the API server answers that it does not exist.
//
// # What is believed
//
//   - Absence is proved by no answer that lacks an object. Only a Namespace that lists show
//     to be empty is deleted for it, and an answer that is not whole is an error (kube).
//   - A kind that is not served is not gone: its objects are not pruned and stay in the parent.
//   - The label decides whose an object is: all kubesyncs are one field manager. The first
//     set of a daemon that declares an object keeps it until it declares it no more. An
//     object with the label of another daemon's set is refused, and so is a set whose parent
//     names the Lease of another writer while that changes, by our own monotonic clock.
package apply

// Package apply makes a cluster what a repo's manifests say: files become
// objects, objects are checked and prepared, and what is left is written. It is
// in two halves. The first, described here, needs no cluster and never talks to
// one; it is a chain of plain values, each stage tested alone:
//
//	fs.FS --Loader.Load--> Loaded --Check(Rules)--> Checked
//
// # Loading
//
// A file holds any number of YAML or JSON documents, and lists, which are taken
// apart. Values mean what they mean to kubectl, because the same libraries read
// them (YAML 1.1 by way of sigs.k8s.io/yaml, JSON by way of sigs.k8s.io/json), and
// documents are separated where kubectl separates them; a fuzz test holds both
// against each other. We differ where kubectl would lose something without a
// word: a key that stands twice in a mapping is a problem, and behind the end
// marker "..." the next document begins. Those libraries tell no lines, so
// go.yaml.in/yaml/v3 finds the places of list items and of mistakes.
//
// A document with neither apiVersion nor kind is no Kubernetes object and is
// skipped. A namespace on a cluster-scoped object is left out with a warning, as
// kubectl leaves it out.
//
// Parsed files are remembered by the hash of their content, for as long as the
// last Load saw them. Objects of a Loader are therefore shared and never changed:
// Check works on copies.
//
// # Problems
//
// Nothing is found out one by one: Load and Check report everything that is wrong
// as Problems, each with file, line and object. Any problem means that nothing is
// written and nothing pruned, because a set that is half understood cannot tell
// what has left it. Load returns what it could read beside its error, so that
// JoinProblems can put what Check finds into the same report. A problem that is
// Refused is no mistake of the manifest: the configuration forbids the object.
//
// What parsers quote from a file never reaches an error, since the text that does
// not parse may be a password.
//
// # The application tier
//
// Check refuses what an application repo may not declare: what lives in a system
// namespace or in none, the RoleBinding that gives these repos their rights, and
// pods that Pod Security's level baseline forbids, in whichever kind they are
// wrapped. It judges what will be sent, and refuses what it cannot judge. This is
// courtesy, not the boundary: it says early and clearly what the API server would
// refuse anyway, because every request for such a repo is made as a user who has
// rights in its namespaces only. Pods that a repo's own controllers make are never
// seen here; the label pod-security.kubernetes.io/enforce on the namespace is what
// stops them. Nor is any ServiceAccount of a namespace out of reach for who may write
// there. Package test/hostile tries all of it.
//
// Kinds that such a repo may not list, though it may write others in the namespace, fail
// object by object, and what there is of them stays: whose it is could not be told.
//
// # Preparing
//
// What is sent differs from what is written in git where git would harm: metadata
// that only the server sets is dropped, and so are status (where it is a
// subresource), the last-applied annotation and a foreign apply set's label;
// stringData of a Secret becomes data, since ownership of stringData says nothing
// about data; a variable that a container sets twice keeps its last value, as the
// kubelet would read it, and of a port that stands twice the last is sent. Null is
// sent as it is, and left out only where the API server refuses it (nulls.go). The annotation kubesync.io/ignore leaves out fields that
// somebody else shall own. Annotations under kubesync.io/ are held against what
// exists: a slip in one that protects an object from pruning must not go unnoticed.
//
// # Without a cluster
//
// Check holds objects against Rules.Schemas, if there are any: what the API server of
// the newest supported Kubernetes accepts (package openapi), and what the set's own
// CustomResourceDefinitions say. A kind in an API group of Kubernetes that does not exist
// is a problem then; of kinds in other groups nothing is known. With a cluster there
// are none: the API server knows better.
//
// # Again
//
// What a revision costs shall follow what it changed. A Loader knows files by their
// hash and gives the same manifests for them; a Checker knows manifests by their
// address, and judges one again only if the rules say something else of its kind or
// namespace; an object that is known to be as it was sent gets no goroutine. Manifests are
// kept as JSON, which takes a tenth of the memory of a tree.
//
// # Showing
//
// Diff and Manifest are for people: without what servers write, and without the
// values of Secrets, of which only a change is visible.
//
// # Writing
//
// The second half talks to one API server. A Cluster is what all repos share there,
// a Set is one repo's objects:
//
//	fs.FS --Set.Plan--> Plan --Set.Apply (or DryRun)--> Result
//
// Plan writes nothing. It puts the chain above between what the cluster serves and
// what it holds: discovery, the namespaces, the set's parent, and the metadata of
// every object that carries an apply set's label, one list per kind in use. Of that a plan
// keeps its own set's members and, of other sets', the objects that it declares: what
// others have in the cluster costs it nothing (inventory.go). Reading and checking
// manifests takes turns, as many at once as there are cores; a plan that waits for anything
// has no turn. Apply then goes
//
//	parent widened -> RoleBindings (application tier) -> objects, step by step -> prune -> parent recorded
//
// The parent is the ConfigMap kubesync-<name> of the ApplySet specification
// (KEP-3659). It names every kind and namespace before anything is written there,
// so that a crash at any moment leaves nothing that a later sync would not find.
//
// Objects are sent by server-side apply, forced, as field manager kubesync. Nothing
// is read before it is written: the answer tells whether the object is new, whether
// there are claims on it (claims.go: a client-side applier's entries in managedFields are
// made ours and the object is sent again, which removes what git does not declare; what the
// API server notes for no known writer is given up), whether it is being deleted, and whether admission took our label away; it brings
// metadata alone, except of Jobs. The API server reports mistakes of typing as HTTP 500;
// these are recognised and not sent again until the content changes.
//
// # Watching
//
// While [Cluster.Watch] runs, plans are made of what is seen: one watch a kind in use
// with the label as selector, reduced on arrival to a member: metadata only or, of kinds
// with a status, whole objects, since that tells how they are (health.go) and whether
// a Job has ended; further the Namespaces, the parents, the RoleBindings kubesync, and
// the CRDs. Package follow lists, watches and keeps them, and finds one set's without going
// through the others. A plan waits up to 5 s for what is not seen. Without Namespaces or
// its parent it then fails; objects of a kind that cannot be seen (the
// server behind an aggregated API is down) are parked, and the rest is synced.
// An API server that has gone back to an earlier state makes all of this worthless, which
// ClusterOptions.WentBack tells whoever runs the watching.
// A kind that was not served when its objects were planned is followed from the next plan
// on, which its CRD brings about (newkinds.go). Whoever is the first to find that a kind
// is served in another version, or no more, has the other sets that use it planned anew.
//
//	event -> tracker -> Set.consider -> corrector -> Set.correct -> one apply
//
// Of each object that it declares a set remembers the hash of what it sent, the uid,
// and our entry in managedFields as the answer had it. An event with another entry is
// drift: another writer took fields from us. Entries are compared as sets of fields, in
// the proofs as well (entry.go): the API server writes the same set in several ways. One that
// cannot be read is equal to nothing else and proves nothing. Events that come in while the
// object is being written are looked at when the answer is there, and versions
// decide which is newer. An object that is not seen is asked for before it is called
// deleted, since a removed label looks the same. An object is written by one goroutine
// at a time, sync or correction, and a correction sends only what the last sync sent.
//
// The proofs in the parent (proof.go) let the next process know the same of an object
// without writing it. They prove that nobody has taken a field since; they cannot show
// what admission rewrites, nor writers that use our name. Nothing rests on them but
// not sending: a deletion needs its own proofs.
//
// # What is being deleted
//
// What git declares may be in the course of being deleted by somebody else, and a
// finalizer may keep it so for ever. A plan parks such a Namespace and all that is to live
// in it at once, with what the Namespace's conditions say keeps it; a sync waits three
// seconds in all for other objects, which are mostly gone by then, and parks the rest.
// Everything else is synced. The event that tells of the end, or of a Namespace's
// conditions, has the set synced again; a process that watches nothing waits for up to 30 s
// when all else is done (dying.go). Of what is parked a set remembers what it knew: a Job
// that has run is not put back because its Namespace is.
//
// # What a deletion needs
//
//   - a plan: the revision was fetched, transformed, loaded and checked without error;
//   - the label of this set, a kubesync Apply entry in managedFields, one that can be read,
//     and the object's UID on the set's record (record.go), which only the answers to our own
//     writes fill: label and entry can be copied, as backup tools do;
//   - no declaration by this set or another of this daemon, each other one polled and
//     loaded since the object was found to have left (handover.go);
//   - no owner, no annotation against it, a namespace that we may write in;
//   - the object itself, looked at just before: what a watch or a list told of it is
//     not proof enough. Its uid and resourceVersion are preconditions; after a conflict
//     all of this is looked at again;
//   - that nothing has changed when its turn comes, minutes after the plan perhaps: just
//     before each DELETE nobody in this process may claim the object, this set included,
//     and every other repo has to be loaded still, since a loop that ends takes its claims
//     with it (Set.spares). A set that is deleted as abandoned has to be abandoned still:
//     not listed, without a loop, ours by its parent's writer, and annotated there;
//   - approval, where an object is not as declared, too much would go or nobody knows how
//     much, what makes the manifests has changed (source.go), or data would be lost
//     (approval.go, guard.go; recreate.go for what is to be created again). Which approval
//     counts for what is decided in package prune.
//
// The order is the reverse of applying, and a Namespace comes last, with a look at
// everything in it that is no older than the prune. Webhook configurations and APIServices
// go before anything is applied, since they could refuse it (pruning.first). An object counts as pruned when
// it was seen to be gone: the API server says of its name that there is none.
//
// # Dry runs
//
// DryRun goes the same way and writes nothing. It shows what the kubesync that keeps the set
// would do: the URL and the Lease of the dry run are no reason to hold a prune, and other
// repos are not waited for. Where it was not called as that kubesync is, it warns
// (preview.go). SetOptions.Preview says that the files are not in that kubesync's repo yet.
//
// # What is believed
//
// That something is there, and ours, is looked at before it is deleted. That something
// is absent cannot be proved by the answer that lacks it, so nothing is deleted for it
// but a Namespace that lists show to be empty; and an answer that shows signs of not
// being the API server's own, or not whole, is an error instead: discovery without what
// every API server serves (kinds.go), a list without version, of other objects than those
// asked for, or that never ends (follow.CheckList), a 404 that names no object
// (apierror.go). What is not served, or cannot be looked at, is not gone: it is not
// pruned, keeps its place in the parent, and keeps Namespaces from being pruned.
//
// # Whose object it is
//
// In one daemon, the first set that declares an object has it until it declares it
// no more; then another that does takes it over, label and all, without deleting
// it. An object with the label of a set that is not this daemon's is refused. So is
// a whole set whose parent names another writer's Lease while that Lease is held. It is
// not where it has stayed as it is for as long as it lasts, by our own monotonic clock:
// times that others write are never compared with ours.
// All sets that write as field manager kubesync look alike in managedFields, which
// is why the label decides.
package apply

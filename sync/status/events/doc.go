// Package events reports syncs as Kubernetes Events, for kubectl describe and for
// whatever collects Events already.
//
// # Flow
//
// [Events] is a [sync.Observer]. On the parent ConfigMap of a repo it writes a Normal
// event when a sync has changed something or things are well again, and a Warning
// when a sync comes to something else than before. On an object it writes a Warning
// when kubesync is in conflict over it, may not prune it, or cannot apply it. client-go's
// recorder sends them from a goroutine of its own, joins those that repeat
// themselves, and slows down who writes too many.
//
// # Safety
//
// A sync that finds nothing new writes no event, so a daemon in steady state sends no
// requests for them. An event that cannot be written is lost, and holds up nothing.
// About an object in a namespace that the configuration keeps closed there is none.
// Every text passes the redactor; events go through the Lease's fence as all that is
// written does. A person who may read a namespace's events learns of an object what
// kubesync's log says of it, and nothing of a Secret's values.
package events

// Package lease makes one process the leader, the only one that writes, and all others
// standbys.
//
// # Flow
//
//  1. [New] builds clients of its own for the Lease. They are never fenced.
//  2. [Lease.Run] stands for the lease again and again; [Lease.Once] does so until it had it
//     once, or not in time ([HeldError]).
//  3. A candidacy (leader.go) has client-go's elector take the lease through an electorLock
//     (lock.go), which measures each write, and calls lead with a context.
//  4. The context ends when the lease is lost or the process stops. The lease is renewed until
//     lead has returned, then released, so that a standby follows within a second.
//  5. [Lease.Fence] refuses writes at the transport when the time of the lease is over,
//     whatever has become of the context.
//  6. Where writes of the Lease are slow, pace.go makes it last longer, and webhooks.go finds out
//     why: admission webhooks that are asked about Leases are named in the log.
//
// # Safety
//
//   - How long the Lease lasts stands in it, and standbys wait for as long from when they see it
//     change. The leader writes for four fifths of that from when it sent the renewal, which is
//     earlier: so no two ever write.
//   - No process leads before there is time for the next renewal. When the Lease is to last less
//     again, that counts from the sending of the request: it may be stored without an answer.
//   - A Lease that is as it was before a renewal means a restored etcd: leadership ends, and with
//     it all that is known of the cluster ([Lease.Restart] does the same when a watch notices).
package lease

// Package cluster runs real Kubernetes control planes for tests, the demo and
// benchmarks: etcd, kube-apiserver and, where asked for, kube-controller-manager
// and kube-scheduler, with RBAC on, on free ports of 127.0.0.1.
//
// Flow: FindBinaries downloads the released programs that test/controlplane pins, or
// builds them from that Go module where the network does not allow it, once per
// version, and keeps them in the user's cache folder; KUBERNETES=oldest chooses the
// oldest version that kubesync supports. Launch (or Start,
// in a test) makes a certificate authority, starts an etcd and an API server of
// the cluster's own and waits until both serve. Nothing is shared between two
// clusters but the programs, so tests run in parallel and may break theirs:
// StopAPIServer and FreezeAPIServer are outages, and SaveEtcd and RestoreEtcd take
// everything back to what it was.
//
//	c := cluster.Start(t)                          // ends with the test
//	c := cluster.Start(t, cluster.WithControllers) // Namespaces can be deleted
//	client, err := kubernetes.NewForConfig(c.Config())
//
// A bare API server costs about two seconds and as much CPU time; the
// controllers add half a second. An etcd per cluster is as cheap as a prefix of
// a shared one, since nothing is synced to disk, and needs no clean-up order.
//
// No server outlives its test: they are killed at its end, and by the kernel if
// the test's process is killed. A Detached cluster does live on; its directory
// says which processes it consists of, and Down ends exactly those.
//
// Everything listens on 127.0.0.1. etcd has no authentication, hence anyone
// with an account on the machine can reach a cluster's data while it runs.
package cluster

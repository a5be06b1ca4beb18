// Package probe answers whether the process is alive and ready.
//
//	/healthz  200 as long as the process answers at all
//	/readyz   200 once it does its job: the configuration is loaded, and every repo was
//	          tried once, or another process holds the Lease and this one is on standby
//
// A repo that fails does not make a process unready: another replica would not do
// better, and Kubernetes has nothing to send elsewhere. What was ready stays so until
// the process is asked to stop; a standby that takes over is not unready meanwhile.
//
// The answers name no repo, as anybody on the network may ask.
package probe

// Package server serves status, probes, metrics and webhook, on the addresses that LISTEN and
// PROBE_LISTEN name.
//
// # Flow
//
//	LISTEN        -> names -> token -> page and API, profiles with DEBUG
//	              -> what PROBE_LISTEN serves
//	PROBE_LISTEN  -> probes, metrics, push webhook
//
// The handlers come as [Routes]; this package gives them limits, headers and a
// connection. It knows nothing of repos and clusters, and serves in a standby as in
// the process that writes.
//
// # An address that cannot be had
//
// One that was asked for ends the start, with an error that says what to do. The
// default is another matter: no one asked for it, and a taken port is no reason to
// leave a cluster unsynced. It is logged, and tried again until it is free, as when the
// pod before this one still has the node's network.
//
// # Safety rules
//
//   - Nothing that is served changes anything. The push webhook is the one handler
//     that takes a POST, and all it can cause is a poll.
//   - Every phase of a connection has a time limit, every request a limit of size. A
//     handler that streams lifts the limit for writing by [http.ResponseController],
//     and has to end with its request's context, which ends when the server stops.
//   - On a loopback address without a token, page, API, metrics and profiles answer
//     only to names of this machine: a web page that makes its own name point here
//     (DNS rebinding) would otherwise read them with its visitor's browser. The probes
//     show nothing, and the webhook is signed.
//   - The token is compared in constant time and never asked for by probes, metrics and
//     the webhook. While its file cannot be read, no one is let in.
//   - A socket is for its owner alone (mode 0600). One that a process left behind is
//     replaced; one that is in use, and any other file, is not.
package server

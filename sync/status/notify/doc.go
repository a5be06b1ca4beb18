// Package notify sends a notification when something about a repo changes that a person wants to
// know: never what merely goes on.
//
// # Flow
//
//	sync.Report, apply.Drift -> transitions -> Event -> a queue per address -> POST
//
// Notifications are
//
//	io.kubesync.repo.failing    when two syncs in a row were not in sync: what the next
//	                            try mends, 5 s later, is no news
//	io.kubesync.repo.recovered  when it is in sync again after that
//	io.kubesync.repo.synced     when a revision other than the last one is in the cluster
//	io.kubesync.prune.held      when a revision waits for approval to prune
//	io.kubesync.object.conflict    when a user writes an object again and again, once an hour
//
// A process that has just started knows nothing of before: it notifies of a revision only
// if its first sync changed something, and of a failure that lasts once more.
//
// # What is sent
//
// A CloudEvent 1.0 in structured mode (application/cloudevents+json): type as above,
// source "/kubesync/NAMESPACE/LEASE", subject the repo's name, data as [Data] says. An
// address with slack+ before its scheme gets {"text": "…"} instead.
//
// # Safety rules
//
//   - Nothing waits for an address: each has a queue of its own, and what does not fit
//     is dropped and said so in the log.
//   - A server that cannot be reached, is busy (408, 429) or broken (5xx) is tried
//     again, ever later, for about five minutes. Everything else is final.
//   - Addresses are secrets, path included: log lines show scheme and host. Redirects are
//     not followed. Texts pass through the redactor.
package notify

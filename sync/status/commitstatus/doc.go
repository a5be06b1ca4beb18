// Package commitstatus shows at the git server what became of a commit: pending while it is
// on its way into the cluster, then success or failure with the reason in one line. It
// shows beside the commit and in merge requests, as "kubesync/REPO".
//
// # Flow
//
//	sync.Progress, sync.Report -> status, if it is another one -> the newest per repo -> POST
//
// # Servers
//
//	GitHub         https://api.github.com for github.com, else ORIGIN/api/v3
//	GitLab         ORIGIN/api/v4
//	Gitea, Forgejo BASE/api/v1, where BASE is what stands before OWNER/REPO in the URL
//
// Which one it is, github.com apart, is found out by asking for the API's version, once a
// repo and without credentials.
//
// # Safety rules
//
//   - The repo's credentials are used, and sent to scheme, host and port of its URL, and
//     of a repo at https://github.com to https://api.github.com, nowhere else. Redirects are
//     not followed. A repo over ssh has no credentials that an API would take: nothing is
//     sent, which the log says once.
//   - Nothing waits: each repo has a sender of its own, which only ever sends the newest
//     status. A server that is down or busy is tried again, ever later or when it says;
//     what it refuses is logged, once for each reason.
//   - Descriptions pass through the redactor: they are as public as the commit.
package commitstatus

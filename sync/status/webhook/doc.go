// Package webhook receives pushes, so that a repo is polled at once and not at the end
// of its interval.
//
// # Flow
//
//	POST -> signature -> provider's body -> repo.Push -> repos that it concerns -> pace -> poll
//
// The signature decides whether anybody listens; then the headers say whose body it is:
//
//	GitHub            X-GitHub-Event   X-Hub-Signature-256: sha256=HEX
//	Gitea, Forgejo    X-Gitea-Event    X-Gitea-Signature or X-Forgejo-Signature: HEX
//	Bitbucket         X-Event-Key      X-Hub-Signature: sha256=HEX
//	GitLab            X-Gitlab-Event   X-Gitlab-Token: the secret itself
//	anything else     none of these    X-Hub-Signature-256: sha256=HEX
//
// HEX is the HMAC-SHA256 of the body with the secret. "Anything else" is for scripts and
// servers without a webhook of their own; its body is
//
//	{"url": "https://git.example.com/team/site.git", "ref": "refs/heads/main"}
//
// where the ref may be missing. Only the few fields that matter are read of any body,
// which is why no library of the providers' many events is used.
//
// # Safety rules
//
//   - All that a request can cause is a poll, at most one a second and repo: what comes
//     in between is one more poll at the end of that second. So replays and floods are
//     harmless, and nothing in a body is believed but which repo to look at.
//   - Signatures and tokens are compared in constant time. A request without one is
//     refused before its body is read.
//   - A body has a limit of size, and few are read at a time.
//   - While the secret cannot be read, everything is refused.
package webhook

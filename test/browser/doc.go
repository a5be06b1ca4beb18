// Package browser holds the status page against what a person sees: a real browser
// (Debian's chromium) looks at a real kubesync on real servers, while a repo is synced for
// the first time, a rollout fails, a prune waits, a user conflicts, and the API server is away.
//
//	go -C test/browser test ./...
//
// It is a module of its own, so that nothing of the browser's protocol gets near the
// daemon. The screenshots go to a temporary folder, or to the one that -screenshots
// names. scripts/browser runs it, and with -update renews those that the README shows.
//
// The browser is chromium on PATH: apt-get install chromium. It runs with a profile of
// its own, without a sandbox (the tests may run as root), and is asked to speak to no one
// but the page.
package browser

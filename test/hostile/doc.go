// Package hostile lets an application repo try everything to reach beyond its
// namespaces, and shows what becomes of it.
//
// One daemon runs with the least rights that deploy/ has for it, with three repos: the
// platform's, of the system tier, a neighbour's, and the hostile one, both of the
// application tier. Each attempt (attempts_test.go) is one revision of the hostile repo:
// a manifest that attacks, beside an object that stays, and without one that was there
// before. Then
//
//   - nothing outside has changed: uid and resourceVersion of every other object;
//   - the log says truly what is wrong, with file, line and object;
//   - what left the repo is still there, unless the attempt is harmless where it may
//     write;
//   - and the next revision, without the attack, is synced.
//
// What kubesync cannot contain, because it never sees it, is in the table too: with what
// really happens. Run it, and see the closing count, with
//
//	go test ./test/hostile -v
package hostile

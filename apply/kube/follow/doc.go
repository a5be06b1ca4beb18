// Package follow lists the objects of one resource and reports every change from then on.
//
//	list (in pages) -> current -> watch … watch -> lost -> wait -> list …
//
// In detail:
//
//  1. [Follow] lists, calls [Handler.Seen] for every object, then [Handler.Current], and
//     watches from the version of the list.
//  2. A watch that ends is continued from the last version. That is no loss.
//  3. On an error, 410 Gone, silence or a version that decreases, Follow calls [Handler.Lost]
//     and lists again until that succeeds.
//  4. After a cut, and with every list, Follow checks that the API server has not gone back
//     to an earlier state (probe, goesOn), as after the restore of a backup. If it has, the
//     error is [ErrWentBack].
//
// A [Store] keeps what its owner needs of each object, once for all readers. Follow itself
// keeps only a version. An idle watch costs a bookmark a minute.
//
// # Safety rules
//
//   - An object is gone only when its deletion was seen, or when a complete list lacks it. A
//     list that breaks off removes nothing.
//   - Code that deletes because of what a store lacks asks first whether it is current.
//   - An answer that is not what was asked for counts as a loss ([CheckList], check).
//
// # Why not client-go's Reflector
//
// Read in client-go v0.37.2, tools/cache/reflector.go; it cannot do three things:
//
//   - Detect a silent watch. handleAnyWatch waits for the next event without a deadline. It
//     asks the server for an end after 5 to 10 minutes (TimeoutSeconds) and relies on it; a
//     proxy that keeps the connection open and sends nothing blocks it for ever. Bookmarks
//     are not expected. Follow ends a watch without a bookmark for 150 s.
//   - Detect a server that went back. setLastSyncResourceVersion takes every version, smaller
//     ones too, and a re-watch sends the last one unchecked: an API server that was restored
//     is silent until it reaches that version, and then leaves out what it has undone. A list
//     that fails with "Too large resource version" is repeated without a version, and its
//     older objects replace the store's; only a store of our own could notice.
//   - Report a loss. An event of another type is logged and skipped, and a refused connection
//     is retried inside watch; the WatchErrorHandler sees neither.
//
// A ListerWatcher that wraps all requests could add these checks. It would be list, watch,
// probe and check of this package; the Reflector would replace the loop of Follow alone.
package follow

// Package follow keeps hearing of the objects of one resource: what there is, and
// from then on every change.
//
// # Flow
//
//	list (in pages) -> current -> watch … watch -> lost -> wait -> list …
//
// [Follow] lists, tells its [Audience] of every object, and then watches from the
// version of the list on. A watch ends every few minutes, because it was asked to
// or because something on the way has cut it. That is no loss as long as the next
// one goes on from the last version seen. It is one when the server does not
// answer, or has forgotten that version (410 Gone): then the audience is told that it
// knows nothing for certain any more, and what there is is listed again, until
// that succeeds.
//
// A watch is lost, too, when it is silent for longer than bookmarks allow, and when it
// tells of what was not asked for or of versions that grow smaller (check.go). An API
// server that was restored from a backup begins a watch from a version that it has yet
// to reach, and is silent until then; and one that has gone on past that version leaves
// out what it has undone. So after a cut, and with every list, it is looked whether it is
// still where it was, and no object older than it was. If not, [ErrWentBack] tells so.
//
// # Rules of safety
//
// An object counts as gone only when its deletion was seen, or when a complete
// list did not have it: a list that breaks off takes nothing away. Whoever
// deletes things because of what is heard here has to ask whether it is current.
//
// # What it costs
//
// Follow keeps nothing but a version; a [Shelf] keeps what its owner asks for, once,
// however many look at it. Pages bound what a list costs in memory; an
// idle watch costs a bookmark a minute.
package follow

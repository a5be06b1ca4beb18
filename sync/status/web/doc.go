// Package web shows what a board knows: as pages for people, and as JSON for
// programs. API.md describes the latter.
//
//	/                              all repos
//	/repos/NAME                    one repo, its objects, what was done last
//	/api/v1/repos                  all repos as JSON
//	/api/v1/repos/NAME             one repo
//	/api/v1/repos/NAME/objects     its objects
//	/api/v1/events                 what happens, as server-sent events
//	/assets/                       the style sheet, the script, the icon
//
// Pages are made on the server by components (*.templ, of which `make update` generates
// *_templ.go), complete without the script, which only brings them
// up to date, and hold nothing from elsewhere. Links are relative, so that a proxy may
// serve them under a path of its own.
//
// # Safety
//
// Only GET and HEAD are answered, and nothing here can change anything. The content
// security policy allows the files of this package and nothing else, no inline script or
// style. Everything that a page shows is escaped by templ (TestPagesEscapeEveryText); secrets are
// masked by the board. A reader of events that does not read is dropped.
package web

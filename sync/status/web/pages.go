package web

import (
	"bytes"
	"embed"
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/kubesync/kubesync/sync/status"
)

//go:embed assets
var files embed.FS

// shownObjects is how many objects a page lists; the filter finds the others.
const shownObjects = 1000

// loadAssets loads the files that pages refer to, by name.
func loadAssets() map[string]asset {
	assets := map[string]asset{}
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		body, err := files.ReadFile(path.Join("assets", name))
		if err != nil {
			panic(err) // it is embedded
		}
		assets[name] = asset{kind: kind, body: body, tag: tagOf(body)}
	}
	return assets
}

// asset is a file that pages refer to.
type asset struct {
	kind, tag string
	body      []byte
}

// ServeHTTP implements http.Handler.
func (a asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("ETag", a.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}

// page is what every page shows.
type page struct {
	Root     string // the relative path to the first page
	Title    string
	Now      time.Time
	Overview status.Overview
}

// detailPage is what the page of a repo shows.
type detailPage struct {
	page
	Repo    status.Detail
	Leaving []status.Object // left git, still there
	Objects []status.Object
	Total   int
	More    int // objects that match the filter and are not listed
	Filter  status.Filter
	Kinds   []string
}

// objectCount says how many objects are listed, and of how many.
func (p detailPage) objectCount() string {
	switch {
	case p.Total == 1 && len(p.Objects) == 1:
		return "1 object."
	case len(p.Objects) == p.Total:
		return fmt.Sprintf("%d objects, those first that need attention.", p.Total)
	case p.More > 0:
		return fmt.Sprintf("%d of %d objects; %d more match, narrow the filter to see them.", len(p.Objects), p.Total, p.More)
	}
	return fmt.Sprintf("%d of %d objects.", len(p.Objects), p.Total)
}

// page returns what every page shows, now.
func (s *server) page(root, title string) page {
	return page{Root: root, Title: title, Now: time.Now(), Overview: s.board.Overview()}
}

func (s *server) overviewPage(w http.ResponseWriter, r *http.Request) {
	show(w, r, http.StatusOK, overviewPage(s.page(".", "kubesync")))
}

func (s *server) repoPage(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	filter, err := filterOf(r.URL.Query())
	if err != nil {
		show(w, r, http.StatusBadRequest, messagePage(s.page("..", "Not understood"), err.Error()))
		return
	}
	detail, found := s.board.Repo(name)
	all, _ := s.board.Objects(name, status.Filter{})
	if !found {
		text := fmt.Sprintf("There is no repo %q. It may have left the list of repos.", name)
		show(w, r, http.StatusNotFound, messagePage(s.page("..", "No such repo"), text))
		return
	}
	p := detailPage{page: s.page("..", name+" · kubesync"), Repo: detail, Filter: filter, Objects: all, Total: len(all)}
	if filter != (status.Filter{}) {
		p.Objects, _ = s.board.Objects(name, filter)
	}
	if p.More = len(p.Objects) - shownObjects; p.More > 0 {
		p.Objects = p.Objects[:shownObjects]
	}
	for _, o := range all {
		if o.State == status.ObjectBlocked {
			p.Leaving = append(p.Leaving, o)
		}
		p.Kinds = append(p.Kinds, o.Kind)
	}
	slices.Sort(p.Kinds)
	p.Kinds = slices.Compact(p.Kinds)
	show(w, r, http.StatusOK, repoPage(p))
}

// show sends a page while it is made, so that a long one begins at once. One that cannot
// be finished breaks off, which the browser sees from its missing end.
func show(w http.ResponseWriter, r *http.Request, code int, page templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	if err := page.Render(r.Context(), w); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}

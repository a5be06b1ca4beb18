package web

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync/status"
)

//go:embed templates assets
var files embed.FS

// shownObjects is how many objects a page lists; the filter finds the others.
const shownObjects = 1000

// pages makes the pages. Its templates and files are part of the program, so that
// what is wrong with them shows in any test.
type pages struct {
	overview, repo, message *template.Template
	assets                  map[string]asset
}

// newPages parses the templates and loads the files.
func newPages() pages {
	layout := template.Must(template.New("layout.html").Funcs(words()).ParseFS(files, "templates/layout.html"))
	page := func(name string) *template.Template {
		return template.Must(template.Must(layout.Clone()).ParseFS(files, "templates/"+name))
	}
	p := pages{overview: page("overview.html"), repo: page("repo.html"), message: page("message.html"), assets: map[string]asset{}}
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		body, err := files.ReadFile(path.Join("assets", name))
		if err != nil {
			panic(err) // it is embedded
		}
		p.assets[name] = asset{kind: kind, body: body, tag: tagOf(body)}
	}
	return p
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

// view is what a template shows.
type view struct {
	Root     string // the relative path to the first page
	Title    string
	Now      time.Time
	Overview status.Overview

	Repo    status.Detail
	Leaving []status.Object // left git, still there
	Objects []status.Object
	Total   int
	More    int // objects that are not listed
	Filter  status.Filter
	Kinds   []string
	States  []status.ObjectState
	Healths []apply.HealthState // nil if nobody knows the health
	Message string
}

func (s *server) overviewPage(w http.ResponseWriter, r *http.Request) {
	s.show(w, http.StatusOK, s.pages.overview, view{Root: ".", Title: "kubesync", Overview: s.board.Overview()})
}

func (s *server) repoPage(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	filter, err := filterOf(r.URL.Query())
	if err != nil {
		s.show(w, http.StatusBadRequest, s.pages.message, view{Root: "..", Title: "Not understood", Overview: s.board.Overview(), Message: err.Error()})
		return
	}
	detail, found := s.board.Repo(name)
	all, _ := s.board.Objects(name, status.Filter{})
	if !found {
		s.show(w, http.StatusNotFound, s.pages.message, view{Root: "..", Title: "No such repo", Overview: s.board.Overview(),
			Message: fmt.Sprintf("There is no repo %q. It may have left the list of repos.", name)})
		return
	}
	v := view{Root: "..", Title: name + " · kubesync", Overview: s.board.Overview(), Repo: detail, Filter: filter, Total: len(all), States: status.ObjectStates()}
	v.Objects = all
	if filter != (status.Filter{}) {
		v.Objects, _ = s.board.Objects(name, filter)
	}
	if v.More = len(v.Objects) - shownObjects; v.More > 0 {
		v.Objects = v.Objects[:shownObjects]
	}
	for _, o := range all {
		if o.State == status.ObjectBlocked {
			v.Leaving = append(v.Leaving, o)
		}
		v.Kinds = append(v.Kinds, o.Kind)
	}
	slices.Sort(v.Kinds)
	v.Kinds = slices.Compact(v.Kinds)
	if detail.Health != nil {
		v.Healths = apply.HealthStates()
	}
	s.show(w, http.StatusOK, s.pages.repo, v)
}

// pageBuffer is how much of a page is made before its first byte is sent.
const pageBuffer = 16 << 10

// show makes a page. It is sent while it is made, so that a long one begins at once;
// one that cannot be finished breaks off, which the browser tells from its end.
func (s *server) show(w http.ResponseWriter, code int, page *template.Template, v view) {
	v.Now = time.Now()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	out := bufio.NewWriterSize(w, pageBuffer)
	if err := page.ExecuteTemplate(out, "layout.html", v); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	_ = out.Flush() // a client that has gone sees nothing
}

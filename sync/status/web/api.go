package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/sync/status"
)

// objectList is the answer to a question for objects.
type objectList struct {
	Repo    string          `json:"repo"`
	Total   int             `json:"total"` // of the repo, whatever was asked for
	Objects []status.Object `json:"objects"`
}

func (s *server) overview(w http.ResponseWriter, r *http.Request) {
	answer(w, r, s.board.Overview())
}

func (s *server) repo(w http.ResponseWriter, r *http.Request) {
	detail, found := s.board.Repo(r.PathValue("name"))
	if !found {
		refuse(w, http.StatusNotFound, noSuchRepo(r))
		return
	}
	answer(w, r, detail)
}

func (s *server) objects(w http.ResponseWriter, r *http.Request) {
	filter, err := filterOf(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	name := r.PathValue("name")
	detail, found := s.board.Repo(name)
	objects, _ := s.board.Objects(name, filter)
	if !found {
		refuse(w, http.StatusNotFound, noSuchRepo(r))
		return
	}
	answer(w, r, objectList{Repo: name, Total: total(detail.Repo), Objects: objects})
}

// total is how many objects a repo has, those that left git and are still there included.
func total(r status.Repo) int {
	n := 0
	for _, count := range r.Objects {
		n += count
	}
	return n
}

// filterOf reads which objects are asked for. A word that cannot match is an error,
// lest a slip be taken for the absence of such objects.
func filterOf(query url.Values) (status.Filter, error) {
	filter := status.Filter{
		Text:   strings.TrimSpace(query.Get("text")),
		Kind:   query.Get("kind"),
		State:  query.Get("state"),
		Health: query.Get("health"),
	}
	if filter.State != "" && !slices.Contains(status.ObjectStates(), status.ObjectState(filter.State)) {
		return filter, fmt.Errorf("there is no state %q, only %s", filter.State, quoted(status.ObjectStates()))
	}
	if filter.Health != "" && !slices.Contains(health.States(), health.State(filter.Health)) {
		return filter, fmt.Errorf("there is no health %q, only %s", filter.Health, quoted(health.States()))
	}
	for name := range query {
		if !slices.Contains([]string{"text", "kind", "state", "health"}, name) {
			return filter, fmt.Errorf("there is no parameter %q, only text, kind, state and health", name)
		}
	}
	return filter, nil
}

// quoted lists words.
func quoted[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = fmt.Sprintf("%q", word)
	}
	return strings.Join(texts, ", ")
}

// answer writes a value as JSON, or that it is what the client has already.
func answer(w http.ResponseWriter, r *http.Request, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", tagOf(body))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(append(body, '\n')))
}

// tagOf is the entity tag of a content.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return fmt.Sprintf(`"%x"`, sum[:12])
}

// refuse says what is wrong with a request to the API.
func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // a client that has gone gets nothing
}

func noSuchRepo(r *http.Request) string {
	return fmt.Sprintf("there is no repo %q: /api/v1/repos lists those that there are", r.PathValue("name"))
}

func apiNotFound(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD are answered: nothing can be changed here")
		return
	}
	refuse(w, http.StatusNotFound, "there is /api/v1/repos, /api/v1/repos/NAME, /api/v1/repos/NAME/objects and /api/v1/events")
}

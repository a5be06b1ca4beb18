package commitstatus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/status/sender"
)

// server is the API of a git server, for one repository.
type server struct {
	kind  string // "GitHub", "GitLab", "Gitea"
	api   *url.URL
	owner string // GitHub, Gitea
	name  string // GitLab: the whole path
}

// place is what a repo's URL says of its server.
type place struct {
	origin *url.URL // scheme, host and port
	path   string   // of the repository, without slashes at its ends and .git
}

// errNoAPI says why there is no status to set, and never will be.
type errNoAPI struct{ reason string }

// Error gives the reason.
func (e *errNoAPI) Error() string { return e.reason }

// placeOf reads a repo's URL.
func placeOf(address repo.URL) (place, error) {
	parsed, err := url.Parse(address.String()) // which has no credentials
	if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return place{}, &errNoAPI{"its URL is not https:// or http://, so there are no credentials for the API of the git server"}
	}
	repository := strings.TrimSuffix(strings.Trim(parsed.Path, "/"), ".git")
	if !strings.Contains(repository, "/") {
		return place{}, &errNoAPI{"its URL does not end in OWNER/REPO, as those of GitHub, GitLab and Gitea do"}
	}
	return place{origin: &url.URL{Scheme: parsed.Scheme, Host: parsed.Host}, path: repository}, nil
}

// at returns the API under a path of the origin.
func (p place) at(elements ...string) *url.URL { return p.origin.JoinPath(elements...) }

// candidates are the APIs that a repository may be reached by, in the order in which they
// are looked for.
func (p place) candidates() []server {
	before, name := path.Split(p.path)
	prefix, owner := path.Split(strings.TrimSuffix(before, "/"))
	if p.origin.Scheme == "https" && p.origin.Host == "github.com" {
		return []server{{kind: "GitHub", api: &url.URL{Scheme: "https", Host: "api.github.com"}, owner: owner, name: name}}
	}
	return []server{
		{kind: "GitLab", api: p.at("api", "v4"), name: p.path},
		{kind: "Gitea", api: p.at(prefix, "api", "v1"), owner: owner, name: name},
		{kind: "GitHub", api: p.at("api", "v3"), owner: owner, name: name},
	}
}

// versionPath is what one API has and the others have not; a refusal to answer without
// credentials says as much.
func (s server) versionPath() string {
	if s.kind == "GitHub" {
		return "meta"
	}
	return "version"
}

// find looks which of the candidates is there.
func find(ctx context.Context, client *http.Client, agent string, p place) (server, error) {
	candidates := p.candidates()
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	for _, candidate := range candidates {
		there, err := candidate.answers(ctx, client, agent)
		if err != nil {
			return server{}, err
		}
		if there {
			return candidate, nil
		}
	}
	return server{}, &errNoAPI{fmt.Sprintf("%s has the API of neither GitHub nor GitLab nor Gitea", p.origin)}
}

// answers reports whether the API is there.
func (s server) answers(ctx context.Context, client *http.Client, agent string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.api.JoinPath(s.versionPath()).String(), nil)
	if err != nil {
		return false, fmt.Errorf("look for the API of %s: %w", s.kind, err)
	}
	request.Header.Set("User-Agent", agent)
	answer, err := client.Do(request)
	if err != nil {
		return false, &sender.Later{Err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return false, &sender.Later{Err: err}
	}
	var later *sender.Later
	if err := sender.Judge(answer, fmt.Errorf("%s answers %s", request.URL, answer.Status)); errors.As(err, &later) {
		return false, err
	}
	known := answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden
	return known && json.Valid(body) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")), nil
}

// mostAnswer is how many bytes of an answer are read.
const mostAnswer = 64 << 10

// request makes the request that sets a status.
func (s server) request(ctx context.Context, name string, st status, credentials repo.Credentials) (*http.Request, error) {
	label := "kubesync/" + name
	var target *url.URL
	body := map[string]string{"state": string(st.state), "description": st.description}
	if s.kind == "GitLab" {
		target = s.api.JoinPath("projects", url.PathEscape(s.name), "statuses", st.revision)
		body["name"] = label
		if st.state == Failure {
			body["state"] = "failed"
		}
	} else {
		target = s.api.JoinPath("repos", s.owner, s.name, "statuses", st.revision)
		body["context"] = label
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode a commit status: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(encoded))
	if err != nil {
		return nil, fmt.Errorf("commit status: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if s.kind == "Gitea" { // takes password and token alike
		request.SetBasicAuth(credentials.User, credentials.Password)
	} else {
		request.Header.Set("Authorization", "Bearer "+token(credentials))
	}
	return request, nil
}

// token is what of a user and a password is the access token: either may be, as git's
// servers have it.
func token(credentials repo.Credentials) string {
	if credentials.Password == "" || credentials.Password == "x-oauth-basic" {
		return credentials.User
	}
	return credentials.Password
}

// judge returns nil for an answer that takes the status.
func (s server) judge(answer *http.Response, body []byte) error {
	err := fmt.Errorf("%s at %s answers %s", s.kind, s.api, answer.Status)
	switch code := answer.StatusCode; {
	case s.kind == "GitLab" && code == http.StatusBadRequest && bytes.Contains(body, []byte("Cannot transition status")):
		return nil // it is what it shall be
	case code >= 300 && code < 400:
		return fmt.Errorf("%w, a redirect, which is not followed", err)
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound:
		return fmt.Errorf("%w: the repo's credentials must allow to set the status of commits (GitHub: statuses, GitLab: api and the role Developer, Gitea: write:repository)", err)
	}
	return sender.Judge(answer, err)
}

// errNoCredentials says that a status cannot be set.
var errNoCredentials = errors.New("there are no credentials for it: set REPOCREDS, REPOCREDS_FILE or creds_file")

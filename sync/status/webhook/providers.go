package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/kubesync/kubesync/repo"
)

// parse reads the push out of a body. It is false for events that are none, such as the
// pings with which servers try a webhook out.
func parse(header http.Header, body []byte) (repo.Push, bool, error) {
	body, err := unwrap(header, body)
	if err != nil {
		return repo.Push{}, false, err
	}
	switch {
	case header.Get("X-Event-Key") != "":
		return parseBitbucket(header.Get("X-Event-Key"), body)
	case header.Get("X-Gitlab-Event") != "":
		return parseGitLab(body)
	case header.Get("X-Gitea-Event") != "": // it sends GitHub's headers, too
		return parseGitHub(header.Get("X-Gitea-Event"), body)
	case header.Get("X-Forgejo-Event") != "":
		return parseGitHub(header.Get("X-Forgejo-Event"), body)
	case header.Get("X-GitHub-Event") != "":
		return parseGitHub(header.Get("X-GitHub-Event"), body)
	}
	return parsePlain(body)
}

// unwrap returns the JSON of a body, which GitHub and Gitea may send as a form.
func unwrap(header http.Header, body []byte) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || len(body) > 0 && body[0] == '{' {
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errors.New("the body is no form")
	}
	return []byte(form.Get("payload")), nil
}

// decode reads JSON. The error shows nothing of the body.
func decode[T any](body []byte) (T, error) {
	var value T
	if err := json.Unmarshal(body, &value); err != nil {
		return value, fmt.Errorf("the body is not the JSON that its headers promise: %w", err)
	}
	return value, nil
}

// newPush makes a push of what a provider sends. Addresses that git cannot be asked at,
// and empty texts, are left out.
func newPush(addresses []string, refs []string, branch string) repo.Push {
	push := repo.Push{DefaultBranch: branch}
	for _, address := range addresses {
		if parsed, err := repo.ParseURL(address); err == nil {
			push.URLs = append(push.URLs, parsed)
		}
	}
	for _, ref := range refs {
		if ref != "" {
			push.Refs = append(push.Refs, ref)
		}
	}
	return push
}

// parsePlain reads the body that anybody may send.
func parsePlain(body []byte) (repo.Push, bool, error) {
	plain, err := decode[struct{ URL, Ref string }](body)
	if err != nil {
		return repo.Push{}, false, err
	}
	push := newPush([]string{plain.URL}, []string{plain.Ref}, "")
	if len(push.URLs) == 0 {
		return repo.Push{}, false, errors.New(`the body has no "url" that is a repo's`)
	}
	return push, true, nil
}

// parseGitHub reads what GitHub sends, and Gitea and Forgejo after its example.
func parseGitHub(event string, body []byte) (repo.Push, bool, error) {
	if event != "push" {
		return repo.Push{}, false, nil
	}
	sent, err := decode[struct {
		Ref        string
		Repository struct {
			CloneURL      string `json:"clone_url"`
			SSHURL        string `json:"ssh_url"`
			HTMLURL       string `json:"html_url"`
			DefaultBranch string `json:"default_branch"`
		}
	}](body)
	r := sent.Repository
	return newPush([]string{r.CloneURL, r.SSHURL, r.HTMLURL}, []string{sent.Ref}, r.DefaultBranch), err == nil, err
}

// parseGitLab reads what GitLab sends for a project, a group or the whole system.
func parseGitLab(body []byte) (repo.Push, bool, error) {
	sent, err := decode[struct {
		Kind    string `json:"object_kind"`
		Event   string `json:"event_name"`
		Ref     string
		Refs    []string
		Project struct {
			HTTP          string `json:"git_http_url"`
			SSH           string `json:"git_ssh_url"`
			Web           string `json:"web_url"`
			DefaultBranch string `json:"default_branch"`
		}
	}](body)
	if err != nil {
		return repo.Push{}, false, err
	}
	event := sent.Kind
	if event == "" {
		event = sent.Event
	}
	if event != "push" && event != "tag_push" && event != "repository_update" {
		return repo.Push{}, false, nil
	}
	p := sent.Project
	return newPush([]string{p.HTTP, p.SSH, p.Web}, append(sent.Refs, sent.Ref), p.DefaultBranch), true, nil
}

// parseBitbucket reads what Bitbucket Cloud and Bitbucket Data Center send.
func parseBitbucket(event string, body []byte) (repo.Push, bool, error) {
	if event != "repo:push" && event != "repo:refs_changed" {
		return repo.Push{}, false, nil
	}
	type named struct{ Type, Name string }
	type link struct{ Href string }
	sent, err := decode[struct {
		Push struct {
			Changes []struct{ New, Old *named } // Cloud
		}
		Changes []struct {
			RefID string `json:"refId"` // Data Center
		}
		Repository struct {
			Links struct {
				HTML  link   // Cloud
				Clone []link // Data Center
			}
		}
	}](body)
	if err != nil {
		return repo.Push{}, false, err
	}
	addresses := []string{sent.Repository.Links.HTML.Href}
	for _, clone := range sent.Repository.Links.Clone {
		addresses = append(addresses, clone.Href)
	}
	var refs []string
	for _, change := range sent.Changes {
		refs = append(refs, change.RefID)
	}
	for _, change := range sent.Push.Changes {
		for _, at := range []*named{change.New, change.Old} { // new is missing where a branch was deleted
			switch {
			case at == nil:
			case at.Type == "tag":
				refs = append(refs, "refs/tags/"+at.Name)
			default:
				refs = append(refs, "refs/heads/"+at.Name)
			}
		}
	}
	return newPush(addresses, refs, ""), true, nil
}

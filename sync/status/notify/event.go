package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Kind says what happened: the type of a CloudEvent.
type Kind string

// The kinds.
const (
	Failing   Kind = "io.kubesync.repo.failing"
	Recovered Kind = "io.kubesync.repo.recovered"
	Synced    Kind = "io.kubesync.repo.synced"
	PruneHeld Kind = "io.kubesync.prune.held"
	Conflict  Kind = "io.kubesync.object.conflict"
)

// Event is a CloudEvent 1.0.
type Event struct {
	SpecVersion string    `json:"specversion"` // "1.0"
	ID          string    `json:"id"`          // unique; the same when it is sent again
	Source      string    `json:"source"`      // "/kubesync/NAMESPACE/LEASE"
	Type        Kind      `json:"type"`
	Subject     string    `json:"subject"` // the repo's name
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"` // "application/json"
	Data        Data      `json:"data"`
}

// Data is what an event is about. What does not apply is left out.
type Data struct {
	Repo     string         `json:"repo"`
	URL      string         `json:"url,omitempty"` // without credentials
	Tier     string         `json:"tier,omitempty"`
	Revision string         `json:"revision,omitempty"` // full hash
	Ref      string         `json:"ref,omitempty"`      // refs/heads/main
	Subject  string         `json:"subject,omitempty"`  // of the commit
	Author   string         `json:"author,omitempty"`   // of the commit
	Message  string         `json:"message"`            // what happened, for a person
	Failures int            `json:"failures,omitempty"` // in a row
	Objects  map[string]int `json:"objects,omitempty"`  // how many were created, pruned, failed …
	Object   string         `json:"object,omitempty"`   // that is in conflict
	Approve  string         `json:"approve,omitempty"`  // the command that lets the prune go on
}

// mostMessage is how many characters of a message are sent: what is longer is a list of
// objects that the log has in full.
const mostMessage = 3000

// shorten cuts a text that is too long.
func shorten(text string) string {
	if runes := []rune(text); len(runes) > mostMessage {
		return string(runes[:mostMessage]) + " …"
	}
	return text
}

// structured returns the event in CloudEvents' structured mode.
func (e Event) structured() ([]byte, error) { return encode(e) }

// slack returns the event as a message for Slack's incoming webhooks.
func (e Event) slack() ([]byte, error) {
	return encode(map[string]string{"text": e.text()})
}

// encode makes JSON in which a person can read an address or a shell's redirection.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode a notification: %w", err)
	}
	return buffer.Bytes(), nil
}

// text words the event in Slack's markup.
func (e Event) text() string {
	heading := map[Kind]string{
		Failing: ":red_circle: *%s* fails", Recovered: ":large_green_circle: *%s* has recovered", Synced: ":large_blue_circle: *%s* is synced",
		PruneHeld: ":large_yellow_circle: *%s* waits for approval to prune", Conflict: ":large_orange_circle: *%s*: another writer keeps overwriting an object",
	}[e.Type]
	lines := []string{fmt.Sprintf(heading, escape(e.Subject))}
	if e.Data.Revision != "" {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("`%.7s` %s", e.Data.Revision, escape(e.Data.Subject))))
	}
	if e.Data.Object != "" {
		lines = append(lines, "`"+escape(e.Data.Object)+"`")
	}
	lines = append(lines, escape(e.Data.Message))
	if e.Data.Approve != "" {
		lines = append(lines, "```"+escape(e.Data.Approve)+"```")
	}
	return strings.Join(lines, "\n")
}

// escape masks what means something to Slack.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

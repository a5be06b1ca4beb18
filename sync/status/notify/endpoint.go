package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/sync/status/sender"
)

const (
	// longestQueue is how many events wait for one address.
	longestQueue = 100
	// sendTimeout bounds one try.
	sendTimeout = 10 * time.Second
	// firstPause is the wait after a first failure; it doubles, tries in all times.
	firstPause = 2 * time.Second
	tries      = 8
)

// endpoint is an address and what is queued for it.
type endpoint struct {
	*sender.Sender[Event]
	address Address
	agent   string
	client  *http.Client
	log     zerolog.Logger
}

func newEndpoint(address Address, options Options) *endpoint {
	e := &endpoint{
		address: address, agent: options.UserAgent,
		client: &http.Client{
			Timeout:       sendTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log: options.Log.With().Stringer("notify", address).Logger(),
	}
	e.Sender = sender.New(sender.Options[Event]{
		Send: e.post, Failed: e.failed, Size: longestQueue, First: firstPause, Tries: tries, Sleep: options.sleep,
	})
	return e
}

// failed logs the first failure of an event, and that it is dropped.
func (e *endpoint) failed(event Event, err error, tries int, dropped bool) {
	about := func(line *zerolog.Event) *zerolog.Event {
		return line.Err(err).Str("event", string(event.Type)).Str("repo", event.Subject)
	}
	switch {
	case dropped:
		about(e.log.Error()).Msg("notification dropped")
	case tries == 1:
		about(e.log.Warn()).Msg("cannot send a notification, retrying")
	}
}

// post sends an event once.
func (e *endpoint) post(ctx context.Context, event Event) error {
	body, contentType, err := e.encode(event)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address.Secret(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used") // the error shows it
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", e.agent)
	answer, err := e.client.Do(request)
	if err != nil {
		var failed *url.Error // whose text shows the address
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return &sender.Later{Err: err}
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // lets the connection be used again
	return judge(answer)
}

// encode returns what is sent.
func (e *endpoint) encode(event Event) (body []byte, contentType string, err error) {
	if e.address.Slack() {
		body, err = event.slack()
		return body, "application/json", err
	}
	body, err = event.structured()
	return body, "application/cloudevents+json", err
}

// judge returns nil for an answer that takes the event.
func judge(answer *http.Response) error {
	err := fmt.Errorf("the server answers %s", answer.Status)
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		return fmt.Errorf("%w: redirects are not followed, set NOTIFY_URL to where it leads", err)
	}
	return sender.Judge(answer, err)
}

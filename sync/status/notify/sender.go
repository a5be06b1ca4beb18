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

	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status/retry"
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

// sender sends to one address, one event after the other.
type sender struct {
	address config.NotifyURL
	agent   string
	client  *http.Client
	log     zerolog.Logger
	events  chan Event
	wait    func(context.Context, time.Duration) bool // false: the context has ended
}

func newSender(address config.NotifyURL, options Options) *sender {
	return &sender{
		address: address, agent: options.UserAgent,
		client: &http.Client{
			Timeout:       sendTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log:    options.Log.With().Stringer("notify", address).Logger(),
		events: make(chan Event, longestQueue),
		wait:   sync.Sleep,
	}
}

// queue takes an event, unless too many wait already. It never waits.
func (s *sender) queue(event Event) {
	select {
	case s.events <- event:
	default:
		s.log.Error().Str("event", string(event.Type)).Str("repo", event.Subject).Msg("a notification is lost: too many wait to be sent")
	}
}

// run sends until ctx ends.
func (s *sender) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-s.events:
			if err := s.deliver(ctx, event); err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Str("event", string(event.Type)).Str("repo", event.Subject).Msg("a notification is lost")
			}
		}
	}
}

// deliver sends an event, again and again where that may help.
func (s *sender) deliver(ctx context.Context, event Event) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := s.post(ctx, event)
		var later *retry.Later
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &later):
			return err
		case try == tries:
			return fmt.Errorf("%w (tried %d times)", err, tries)
		case try == 1:
			s.log.Warn().Err(err).Str("event", string(event.Type)).Str("repo", event.Subject).Msg("a notification could not be sent, trying again")
		}
		if !s.wait(ctx, max(pause, later.After)) {
			return ctx.Err()
		}
		pause *= 2
	}
}

// post sends an event once.
func (s *sender) post(ctx context.Context, event Event) error {
	body, contentType, err := s.encode(event)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address.Secret(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used") // the error shows it
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", s.agent)
	answer, err := s.client.Do(request)
	if err != nil {
		var failed *url.Error // whose text shows the address
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return &retry.Later{Err: err}
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // lets the connection be used again
	return judge(answer)
}

// encode returns what is sent.
func (s *sender) encode(event Event) (body []byte, contentType string, err error) {
	if s.address.Slack() {
		body, err = event.slack()
		return body, "application/json", err
	}
	body, err = event.structured()
	return body, "application/cloudevents+json", err
}

// judge tells from an answer whether the event has arrived.
func judge(answer *http.Response) error {
	err := fmt.Errorf("the server answers %s", answer.Status)
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		return fmt.Errorf("%w: redirects are not followed, set NOTIFY_URL to where it leads", err)
	}
	return retry.Judge(answer, err)
}

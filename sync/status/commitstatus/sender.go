package commitstatus

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/status/retry"
)

const (
	// sendTimeout bounds one request.
	sendTimeout = 15 * time.Second
	// firstPause is the wait after a first failure; it doubles, up to longestPause.
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
)

// sender sends the statuses of one repo.
type sender struct {
	teller *Teller
	repo   string
	log    zerolog.Logger

	found *server // once it was looked for
	at    repo.URL
	said  string // the last problem
}

// run sends the newest status until ctx ends.
func (s *sender) run(ctx context.Context, next <-chan status) {
	for {
		var newest status
		select {
		case <-ctx.Done():
			return
		case newest = <-next:
		}
		for pause := firstPause; ; pause = min(2*pause, longestPause) {
			err := s.send(ctx, newest)
			var later *retry.Later
			if ctx.Err() != nil {
				return
			}
			s.tell(err)
			if !errors.As(err, &later) {
				break
			}
			if !s.teller.wait(ctx, max(pause, later.After)) {
				return
			}
			select { // what is newer goes before
			case newest = <-next:
			default:
			}
		}
	}
}

// tell logs a problem, unless it is the last one still.
func (s *sender) tell(err error) {
	if err == nil {
		s.said = ""
		return
	}
	if err.Error() != s.said {
		s.said = err.Error()
		s.log.Warn().Err(err).Msg("the commit status is not set")
	}
}

// send sets a status, once.
func (s *sender) send(ctx context.Context, st status) error {
	listed, is := s.teller.options.Find(s.repo)
	if !is {
		return nil
	}
	where, err := placeOf(listed.URL)
	if err != nil {
		return err
	}
	credentials, err := listed.credentials()
	if err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	if s.found == nil || s.at != listed.URL {
		found, err := find(ctx, client, s.teller.options.UserAgent, where)
		if err != nil {
			return err
		}
		s.found, s.at = &found, listed.URL
	}
	return s.post(ctx, client, st, credentials)
}

// credentials are those in the URL, else those configured.
func (r Repo) credentials() (repo.Credentials, error) {
	if in, there := r.URL.Credentials(); there && in.Password != "" {
		return in, nil
	}
	credentials, there, err := r.Credentials()
	switch {
	case err != nil:
		return repo.Credentials{}, err
	case there:
		return credentials, nil
	}
	if in, there := r.URL.Credentials(); there {
		return in, nil
	}
	return repo.Credentials{}, errNoCredentials
}

// client returns a client that follows no redirect. Statuses are rare: it is made anew,
// with the certificate authorities as they are now.
func (s *sender) client() (*http.Client, error) {
	roots, err := s.teller.options.Roots()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		},
	}, nil
}

// post sets a status at the server that was found.
func (s *sender) post(ctx context.Context, client *http.Client, st status, credentials repo.Credentials) error {
	request, err := s.found.request(ctx, s.repo, st, credentials)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", s.teller.options.UserAgent)
	answer, err := client.Do(request)
	if err != nil {
		return &retry.Later{Err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return &retry.Later{Err: err}
	}
	return s.found.judge(answer, body)
}

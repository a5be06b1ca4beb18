package commitstatus

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/status/sender"
)

const (
	// sendTimeout bounds one request.
	sendTimeout = 15 * time.Second
	// firstPause is the wait after a first failure.
	firstPause = 5 * time.Second
)

// client sets the statuses of one repo's commits.
type client struct {
	options Options
	repo    string
	log     zerolog.Logger

	found  *server // once it was looked for
	at     repo.URL
	logged string // the last problem
}

// set sets a status, once.
func (c *client) set(ctx context.Context, st status) error {
	err := c.send(ctx, st)
	if err == nil {
		c.logged = ""
	}
	return err
}

// failed logs a problem, unless it is the last one still.
func (c *client) failed(_ status, err error, _ int, _ bool) {
	if err.Error() != c.logged {
		c.logged = err.Error()
		c.log.Warn().Err(err).Msg("cannot set the commit status")
	}
}

// send looks for the server, unless it is known, and sends a status to it.
func (c *client) send(ctx context.Context, st status) error {
	listed, is := c.options.Find(c.repo)
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
	over, err := c.http()
	if err != nil {
		return err
	}
	defer over.CloseIdleConnections()
	if c.found == nil || c.at != listed.URL {
		found, err := find(ctx, over, c.options.UserAgent, where)
		if err != nil {
			return err
		}
		c.found, c.at = &found, listed.URL
	}
	return c.post(ctx, over, st, credentials)
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

// http returns a client that follows no redirect. Statuses are rare: it is made each time,
// with the certificate authorities as they are now.
func (c *client) http() (*http.Client, error) {
	roots, err := c.options.Roots()
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
func (c *client) post(ctx context.Context, over *http.Client, st status, credentials repo.Credentials) error {
	request, err := c.found.request(ctx, c.repo, st, credentials)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", c.options.UserAgent)
	answer, err := over.Do(request)
	if err != nil {
		return &sender.Later{Err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return &sender.Later{Err: err}
	}
	return c.found.judge(answer, body)
}

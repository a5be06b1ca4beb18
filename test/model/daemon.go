package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/canary"
	"github.com/kubesync/kubesync/test/lab/daemon"
)

// asked is a daemon and the way to its API.
type asked struct {
	*daemon.Daemon
	client *http.Client
	// secrets are what neither its log nor what it answers may hold.
	secrets *canary.Secrets
}

// startDaemon starts a kubesync in a directory of its own.
func startDaemon(program, dir string, variables daemon.Env) (*asked, error) {
	var secrets canary.Secrets
	if err := secrets.Add(canary.Data, secretValue); err != nil {
		return nil, err
	}
	spec, err := daemon.Spec(program, dir, variables)
	if err != nil {
		return nil, err
	}
	started, err := daemon.Start(spec)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", daemon.Socket(dir))
	}
	return &asked{Daemon: started, secrets: &secrets, client: &http.Client{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 10 * time.Second,
	}}, nil
}

// get returns what the daemon answers.
func (d *asked) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://kubesync"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask kubesync: %w", err)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask kubesync: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask kubesync: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask kubesync for %s: %s: %s", path, response.Status, body)
	}
	return body, d.secrets.Search("the answer to "+path, body)
}

// overview is what of the status counts here.
type overview struct {
	Writing   bool      `json:"writing"`
	Stale     *struct{} `json:"stale"`
	ListError *struct{} `json:"listError"`
	Unlisted  []struct {
		Repo string `json:"repo"`
	} `json:"unlisted"`
	Repos []repoStatus `json:"repos"`
}

// repoStatus is what the status says of a repo.
type repoStatus struct {
	Name      string         `json:"name"`
	State     string         `json:"state"`
	Revision  *revision      `json:"revision"`
	Applied   *revision      `json:"applied"`
	Phase     *struct{}      `json:"phase"`
	Objects   map[string]int `json:"objects"`
	LastSync  time.Time      `json:"lastSync"`
	Error     string         `json:"error"`
	PruneHeld string         `json:"pruneHeld"`
	Approve   string         `json:"approveCommand"`
	Waits     string         `json:"waits"`
}

type revision struct {
	ID string `json:"id"`
}

func (d *asked) overview(ctx context.Context) (overview, error) {
	body, err := d.get(ctx, "/api/v1/repos")
	if err != nil {
		return overview{}, err
	}
	var o overview
	if err := json.Unmarshal(body, &o); err != nil {
		return overview{}, fmt.Errorf("the status of kubesync: %w", err)
	}
	return o, nil
}

// mistakes returns what in a daemon's log no walk may cause.
func (d *asked) mistakes() (string, error) {
	log, err := os.ReadFile(d.Spec.Stderr)
	if err != nil {
		return "", fmt.Errorf("log of kubesync: %w", err)
	}
	if err := d.secrets.Search("the log", log); err != nil {
		return "", err
	}
	bad := regexp.MustCompile(`(?i)panic|DATA RACE|fatal error|made a mistake`)
	at := bad.FindIndex(log)
	if at == nil {
		return "", nil
	}
	end := log[at[0]:min(len(log), at[0]+6000)]
	start := strings.LastIndex(string(log[:at[0]]), "\n") + 1
	return string(log[start:at[0]]) + string(end), nil
}

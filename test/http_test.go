package test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/lab/port"
)

// httpPatience bounds a request, and how long is listened to an answer that does
// not end.
const httpPatience = 5 * time.Second

// reservePorts takes ports that no other test uses and sets variables to the
// addresses where a server may listen on them.
func (s *scenario) reservePorts(args []string) error {
	if len(args) == 0 {
		return errors.New("want port VARIABLE…")
	}
	for _, name := range args {
		taken, err := port.Take()
		if err != nil {
			return err
		}
		s.ports = append(s.ports, taken)
		s.set(name, taken.Address())
	}
	return nil
}

// httpRequest is a request as a script words it.
type httpRequest struct {
	status  int  // wanted
	headers bool // are printed, too
	socket  string
	ca      string
	sign    string // secret
	header  http.Header
	method  string
	url     string
	body    []byte
	pattern *regexp.Regexp // of what is printed
}

// parseHTTP reads what stands after http.
func (s *scenario) parseHTTP(args []string) (httpRequest, error) {
	r := httpRequest{header: http.Header{}, pattern: regexp.MustCompile("")}
	args, err := flags("http", args, func(f *flag.FlagSet) {
		f.IntVar(&r.status, "s", http.StatusOK, "")
		f.BoolVar(&r.headers, "i", false, "")
		f.StringVar(&r.socket, "unix", "", "")
		f.StringVar(&r.ca, "ca", "", "")
		f.StringVar(&r.sign, "sign", "", "")
		f.Func("H", "", func(line string) error {
			name, value, _ := strings.Cut(line, ": ")
			r.header.Add(name, value)
			return nil
		})
	})
	if err != nil {
		return r, err
	}
	if n := len(args) - 2; n > 0 && args[n] == "=~" {
		if r.pattern, err = regexp.Compile("(?m)" + args[n+1]); err != nil {
			return r, err
		}
		args = args[:n]
	}
	if len(args) < 2 || len(args) > 3 {
		return r, errors.New("want http [FLAG…] METHOD URL [FILE] [=~ PATTERN]")
	}
	r.method, r.url = args[0], args[1]
	if len(args) == 3 {
		if r.body, err = os.ReadFile(s.ts.MkAbs(args[2])); err != nil {
			return r, fmt.Errorf("http: %w", err)
		}
	}
	if r.sign != "" {
		mac := hmac.New(sha256.New, []byte(r.sign))
		mac.Write(r.body)
		r.header.Set("X-Hub-Signature-256", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
	}
	return r, nil
}

// client returns a client that follows no redirect and keeps no connection.
func (r httpRequest) client() (*http.Client, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if r.socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", r.socket)
		}
	}
	if r.ca != "" {
		content, err := os.ReadFile(r.ca)
		if err != nil {
			return nil, fmt.Errorf("http: %w", err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(content)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// request asks a server and holds if it answers as wanted.
func (s *scenario) request(args []string) (verdict, error) {
	r, err := s.parseHTTP(args)
	if err != nil {
		return verdict{}, err
	}
	client, err := r.client()
	if err != nil {
		return verdict{}, err
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), httpPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.method, r.url, strings.NewReader(string(r.body)))
	if err != nil {
		return verdict{}, err
	}
	request.Header = r.header
	if host := r.header.Get("Host"); host != "" {
		request.Host = host
	}
	answer, err := client.Do(request)
	if err != nil {
		return verdict{saw: err.Error(), printed: true}, nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil && ctx.Err() == nil { // else it is one that does not end
		return verdict{saw: err.Error(), printed: true}, nil
	}
	printed := string(body)
	if r.headers {
		printed = headerText(answer.Header) + "\n" + printed
	}
	s.answers++
	file := filepath.Join(s.output(), "http-"+strconv.Itoa(s.answers)) // where secrets are looked for
	if err := os.WriteFile(file, []byte(headerText(answer.Header)+string(body)), 0o600); err != nil {
		return verdict{}, fmt.Errorf("http: %w", err)
	}
	return verdict{
		holds:   answer.StatusCode == r.status && r.pattern.MatchString(printed),
		saw:     fmt.Sprintf("%s %s: %s\n%s%s", r.method, r.url, answer.Status, headerText(answer.Header), body),
		printed: true,
		stdout:  printed,
	}, nil
}

// headerText prints a header in the order of the alphabet, a line each.
func headerText(header http.Header) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			fmt.Fprintf(&text, "%s: %s\n", name, value)
		}
	}
	return text.String()
}

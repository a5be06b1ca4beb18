package test

import (
	"cmp"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kubesync/kubesync/test/lab/pki"
)

// webServer serves files.
type webServer struct {
	server *httptest.Server
	status atomic.Int64 // it answers with; 0 is rightly

	mu     sync.Mutex // guards what follows
	posted []string   // requests with a body, "METHOD PATH STATUS BODY"
}

// take keeps a request with a body.
func (w *webServer) take(answer http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	status := cmp.Or(int(w.status.Load()), http.StatusOK)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posted = append(w.posted, fmt.Sprintf("%s %s %d %s", r.Method, r.URL, status, body))
	answer.WriteHeader(status)
}

// posted holds if a web server was sent something that matches.
func (s *scenario) posted(args []string) (verdict, error) {
	name := "web"
	args, err := flags("posted", args, func(f *flag.FlagSet) { f.StringVar(&name, "s", name, "") })
	if err != nil {
		return verdict{}, err
	}
	if len(args) != 1 {
		return verdict{}, errors.New("want posted [-s NAME] PATTERN")
	}
	pattern, err := regexp.Compile(args[0])
	if err != nil {
		return verdict{}, err
	}
	w := s.web[name]
	if w == nil {
		return verdict{}, fmt.Errorf("there is no web server %q", name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.posted {
		if pattern.MatchString(line) {
			return verdict{holds: true, saw: line, printed: true, stdout: line + "\n"}, nil
		}
	}
	return verdict{saw: fmt.Sprintf("it was sent\n%s", strings.Join(w.posted, "\n"))}, nil
}

func (w *webServer) close() {
	w.server.CloseClientConnections()
	w.server.Close()
}

func (s *scenario) webServer(args []string) error {
	if len(args) == 0 {
		return errors.New("want web start, status or normal")
	}
	switch args[0] {
	case "start":
		return s.startWeb(args[1:])
	case "normal":
		return s.changeWeb("0", args[1:])
	case "status":
		if len(args) > 1 {
			return s.changeWeb(args[1], args[2:])
		}
	}
	return errors.New("want web start, status CODE or normal")
}

func (s *scenario) changeWeb(status string, args []string) error {
	name, err := nameOr(args, "web")
	if err != nil {
		return err
	}
	code, err := strconv.ParseInt(status, 10, 64)
	if err != nil {
		return err
	}
	if s.web[name] == nil {
		return fmt.Errorf("there is no web server %q", name)
	}
	s.web[name].status.Store(code)
	return nil
}

func (s *scenario) startWeb(args []string) error {
	var https bool
	var auth, git string
	args, err := flags("web", args, func(f *flag.FlagSet) {
		f.StringVar(&git, "git", "", "")
		f.BoolVar(&https, "https", false, "")
		f.StringVar(&auth, "auth", "", "")
	})
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return errors.New("want web start [-https] [-auth USER:PASSWORD] [-git SERVER] [NAME] DIR")
	}
	name, err := nameOr(args[:len(args)-1], "web")
	if err != nil {
		return err
	}
	user, password, _ := strings.Cut(auth, ":")
	s.keep(password)
	w := &webServer{}
	repos := http.NotFoundHandler()
	if git != "" {
		if s.http[git] == nil {
			return fmt.Errorf("there is no git server %q", git)
		}
		repos = s.http[git].Handler()
	}
	files := http.FileServer(http.Dir(s.ts.MkAbs(args[len(args)-1])))
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		givenUser, givenPassword, _ := r.BasicAuth()
		status := int(w.status.Load())
		switch {
		case auth != "" && (givenUser != user || givenPassword != password):
			http.Error(answer, "who are you?", http.StatusUnauthorized)
		case git != "" && strings.Contains(r.URL.Path, ".git/"):
			repos.ServeHTTP(answer, r)
		case r.Method == http.MethodPost:
			w.take(answer, r)
		case status != 0:
			http.Error(answer, "this server answers so to everything", status)
		default:
			files.ServeHTTP(answer, r)
		}
	}))
	s.web[name] = w
	if !https {
		w.server.Start()
		s.setServer(name, w.server.URL)
		return nil
	}
	return s.startHTTPS(name, w.server)
}

func (s *scenario) startHTTPS(name string, server *httptest.Server) error {
	ca, err := pki.NewAuthority("kubesync-test-web")
	if err != nil {
		return err
	}
	pair, err := ca.Server("web")
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return fmt.Errorf("certificate of a web server: %w", err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	s.setServer(name, server.URL)
	return s.setCA(name, ca.PEM)
}

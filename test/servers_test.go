package test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// testCluster is a cluster of a scenario.
type testCluster struct {
	*cluster.Cluster
	*objects
	seen int64 // bytes of the audit log at the last mark
}

func (s *scenario) startCluster(args []string) error {
	options := []cluster.Option{cluster.WithDir(filepath.Join(s.work, ".cluster-"+strconv.Itoa(len(s.clusters))))}
	var bare, scheduler, audit bool
	args, err := flags("cluster", args, func(f *flag.FlagSet) {
		f.BoolVar(&bare, "bare", false, "")
		f.BoolVar(&scheduler, "scheduler", false, "")
		f.BoolVar(&audit, "audit", false, "")
	})
	if err != nil {
		return err
	}
	for _, o := range []struct {
		wanted bool
		option cluster.Option
	}{{!bare, cluster.WithControllers}, {scheduler, cluster.WithScheduler}, {audit, cluster.WithAuditLog}} {
		if o.wanted {
			options = append(options, o.option)
		}
	}
	name, err := nameOr(args, "")
	if err != nil {
		return err
	}
	if s.clusters[name] != nil {
		return fmt.Errorf("there is a cluster %q already", name)
	}
	c, err := cluster.Launch(s.t.Context(), options...)
	if err != nil {
		return err
	}
	objects, err := newObjects(c.Config())
	if err != nil {
		return errors.Join(err, c.Close())
	}
	s.clusters[name] = &testCluster{Cluster: c, objects: objects}
	if name != "" {
		s.set("kubeconfig_"+name, c.Kubeconfig())
	}
	return s.useCluster([]string{name})
}

func (s *scenario) useCluster(args []string) error {
	name, err := nameOr(args, "")
	if err != nil {
		return err
	}
	if s.clusters[name] == nil {
		return fmt.Errorf("there is no cluster %q", name)
	}
	s.current = s.clusters[name]
	s.ts.Setenv("KUBECONFIG", s.current.Kubeconfig())
	s.set("kubeconfig", s.current.Kubeconfig())
	s.set("cluster", s.current.URL())
	s.set("audit", s.current.AuditLog())
	return nil
}

// theCluster is the one that commands and conditions talk to.
func (s *scenario) theCluster() (*testCluster, error) {
	if s.current == nil {
		return nil, errors.New("there is no cluster yet: start one with the command cluster")
	}
	return s.current, nil
}

func (s *scenario) apiServer(args []string) error {
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	switch strings.Join(args, " ") {
	case "stop":
		c.StopAPIServer()
		return nil
	case "start":
		return c.StartAPIServer(s.t.Context())
	case "freeze":
		return c.FreezeAPIServer()
	case "thaw":
		return c.ThawAPIServer()
	}
	return errors.New("want apiserver stop, start, freeze or thaw")
}

// etcd backs up what the cluster stores, and restores it; with flags of etcdutl.
func (s *scenario) etcd(args []string) error {
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	backup := filepath.Join(s.work, ".etcd-"+filepath.Base(c.Dir()))
	switch {
	case len(args) == 1 && args[0] == "save":
		return c.SaveEtcd(s.t.Context(), backup)
	case len(args) > 0 && args[0] == "restore":
		return c.RestoreEtcd(s.t.Context(), backup, args[1:]...)
	}
	return errors.New("want etcd save or etcd restore [FLAG…]")
}

// token writes a token of a ServiceAccount into a file, the way the kubelet does:
// whoever reads it finds the old one or the new one.
func (s *scenario) token(args []string) error {
	var valid time.Duration
	args, err := flags("token", args, func(f *flag.FlagSet) { f.DurationVar(&valid, "for", 24*time.Hour, "") })
	if err != nil {
		return err
	}
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	if len(args) != 2 || strings.Count(args[0], "/") != 1 {
		return errors.New("want token [-for DURATION] NAMESPACE/NAME FILE")
	}
	namespace, name, _ := strings.Cut(args[0], "/")
	token, err := c.Token(s.t.Context(), namespace, name, valid)
	if err != nil {
		return err
	}
	s.keep(token)
	path := s.ts.MkAbs(args[1])
	if err := os.WriteFile(path+".new", []byte(token), 0o600); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	return nil
}

func (s *scenario) account(args []string) error {
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	if len(args) == 0 || strings.Count(args[0], "/") != 1 {
		return errors.New("want account NAMESPACE/NAME [CLUSTERROLE…]")
	}
	namespace, name, _ := strings.Cut(args[0], "/")
	who, err := c.ServiceAccount(s.t.Context(), namespace, name)
	if err != nil {
		return err
	}
	return s.grant(c, name, who, args[1:])
}

func (s *scenario) user(args []string) error {
	c, err := s.theCluster()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return errors.New("want user NAME [CLUSTERROLE…]")
	}
	who, err := c.User(args[0])
	if err != nil {
		return err
	}
	return s.grant(c, args[0], who, args[1:])
}

func (s *scenario) grant(c *testCluster, name string, who cluster.Identity, roles []string) error {
	for _, role := range roles {
		if err := c.GrantRole(s.t.Context(), who, role); err != nil {
			return err
		}
	}
	s.set("kubeconfig_"+name, who.Kubeconfig)
	return s.secrets.AddKubeconfig(who.Kubeconfig)
}

func (s *scenario) gitServer(args []string) error {
	if len(args) == 0 {
		return errors.New("want gitserver start, ssh, down, up and so on")
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "start":
		return s.startGitServer(rest)
	case "ssh":
		return s.startSSH(rest)
	default:
		return s.changeGitServer(verb, rest)
	}
}

func (s *scenario) startGitServer(args []string) error {
	var https, v0, nofilter bool
	var auth string
	args, err := flags("gitserver", args, func(f *flag.FlagSet) {
		f.BoolVar(&https, "https", false, "")
		f.BoolVar(&v0, "v0", false, "")
		f.BoolVar(&nofilter, "nofilter", false, "")
		f.StringVar(&auth, "auth", "", "")
	})
	if err != nil {
		return err
	}
	name, err := nameOr(args, "git")
	if err != nil {
		return err
	}
	options := []gitserver.Option{gitserver.WithDir(s.repoDir())}
	for _, o := range []struct {
		wanted bool
		option gitserver.Option
	}{{https, gitserver.WithTLS}, {v0, gitserver.WithoutV2}, {nofilter, gitserver.WithoutFilter}} {
		if o.wanted {
			options = append(options, o.option)
		}
	}
	if auth != "" {
		user, password, _ := strings.Cut(auth, ":")
		s.keep(password)
		options = append(options, gitserver.WithBasicAuth(user, password))
	}
	server, err := gitserver.Launch(options...)
	if err != nil {
		return err
	}
	s.http[name] = server
	s.setServer(name, server.Base())
	if !https {
		return nil
	}
	// A copy: the servers of a scenario share a directory, hence the file's name.
	certificate, err := os.ReadFile(server.CAFile())
	if err != nil {
		return fmt.Errorf("CA of %s: %w", name, err)
	}
	return s.setCA(name, certificate)
}

// setServer sets the variables for the address of a server.
func (s *scenario) setServer(name, url string) {
	s.set(name, url)
	_, host, _ := strings.Cut(url, "://")
	s.set(name+"_host", host)
}

// setCA sets the variable for the CA of a server to a file with its certificate.
func (s *scenario) setCA(name string, certificate []byte) error {
	path := filepath.Join(s.work, "."+name+"-ca.crt")
	if err := os.WriteFile(path, certificate, 0o644); err != nil {
		return fmt.Errorf("CA of %s: %w", name, err)
	}
	s.set(name+"_ca", path)
	return nil
}

func (s *scenario) startSSH(args []string) error {
	name, err := nameOr(args, "ssh")
	if err != nil {
		return err
	}
	keys := filepath.Join(s.work, ".keys-"+name)
	if err := os.MkdirAll(keys, 0o700); err != nil {
		return fmt.Errorf("ssh keys: %w", err)
	}
	server, err := gitserver.LaunchSSH(s.repoDir(), keys)
	if err != nil {
		return err
	}
	s.ssh[name] = server
	s.set(name, strings.TrimSuffix(server.URL(""), "/.git"))
	s.set(name+"_key", server.KeyFile)
	s.set(name+"_known_hosts", server.KnownHostsFile)
	return nil
}

// changeGitServer makes a server behave, or tells what it was asked.
func (s *scenario) changeGitServer(verb string, args []string) error {
	value := ""
	switch verb {
	case "slow", "status", "redirect", "auth", "instead":
		if len(args) == 0 {
			return fmt.Errorf("gitserver %s: what is missing is how", verb)
		}
		value, args = args[0], args[1:]
	}
	name, err := nameOr(args, "git")
	if err != nil {
		return err
	}
	if server := s.ssh[name]; server != nil {
		return changeSSH(server, verb)
	}
	server := s.http[name]
	if server == nil {
		return fmt.Errorf("there is no git server %q", name)
	}
	switch verb {
	case "down":
		server.Down()
	case "up":
		return server.Up()
	case "distrusted":
		return server.Distrust()
	case "trusted":
		return server.Trust()
	case "auth":
		user, password, _ := strings.Cut(value, ":")
		s.keep(password)
		server.SetBasicAuth(user, password)
	case "reset":
		server.Log.Reset()
	case "log":
		s.printRequests(server)
	default:
		behaviour, err := behaviour(verb, value)
		if err != nil {
			return err
		}
		server.Behave(behaviour)
	}
	return nil
}

func changeSSH(server *gitserver.SSHServer, verb string) error {
	switch verb {
	case "down":
		server.Down()
		return nil
	case "up":
		return server.Up()
	case "newhostkey":
		return server.NewHostKey()
	}
	return fmt.Errorf("an ssh server cannot be made to %s", verb)
}

func behaviour(verb, value string) (gitserver.Behaviour, error) {
	switch verb {
	case "normal":
		return gitserver.Normal(), nil
	case "cut":
		return gitserver.CutInPack(), nil
	case "stall":
		return gitserver.StallInPack(), nil
	case "corrupt":
		return gitserver.CorruptPack(), nil
	case "vanished":
		return gitserver.Vanished(), nil
	case "instead":
		return gitserver.Instead(value), nil
	case "unauthorized":
		return gitserver.Unauthorized(), nil
	case "redirect":
		return gitserver.RedirectTo(value), nil
	case "slow":
		delay, err := time.ParseDuration(value)
		return gitserver.Slow(delay), err
	case "status":
		status, err := strconv.Atoi(value)
		return gitserver.Failing(status), err
	}
	return nil, fmt.Errorf("gitserver has no verb %q", verb)
}

func (s *scenario) printRequests(server *gitserver.Server) {
	out := s.ts.Stdout() // asked for even if there is nothing to print
	for _, r := range server.Log.Requests() {
		fmt.Fprintln(out, requestLine(r))
	}
}

// requestLine makes a request readable; one that is under way has no status yet.
func requestLine(r gitserver.Request) string {
	status, user := "-", "-"
	if r.Status != 0 {
		status = strconv.Itoa(r.Status)
	}
	if r.User != "" {
		user = r.User
	}
	return fmt.Sprint(r.Kind, " ", status, " ", r.Bytes, " ", user, " ", r.Path)
}

// asked looks for a request to a git server.
func (s *scenario) asked(args []string) (verdict, error) {
	name := "git"
	args, err := flags("asked", args, func(f *flag.FlagSet) { f.StringVar(&name, "s", name, "") })
	if err != nil {
		return verdict{}, err
	}
	server := s.http[name]
	if server == nil || len(args) != 1 {
		return verdict{}, errors.New("want asked [-s NAME] PATTERN, with the name of a git server over http")
	}
	pattern, err := regexp.Compile(args[0])
	if err != nil {
		return verdict{}, err
	}
	requests := append(server.Log.Requests(), server.Log.UnderWay()...)
	for _, r := range requests {
		if line := requestLine(r); pattern.MatchString(line) {
			return verdict{holds: true, saw: "asked: " + line}, nil
		}
	}
	return verdict{saw: fmt.Sprintf("none of %d requests matches", len(requests))}, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/test/canary"
	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/apiproxy"
	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// leaseName is of the daemon's Lease, the default with CONFIG.
const leaseName = "kubesync"

// site is where one story runs: a cluster, git, the ways to both, and a daemon.
type site struct {
	dir      string
	program  string
	cluster  *cluster.Cluster
	git      *gitserver.Server
	tap      *tap
	apiProxy *apiproxy.Proxy
	gitProxy *apiproxy.Proxy
	daemon   *watched
	killed   bool // the last daemon was; its Lease may not have been given back
	waitOut  bool // a dead daemon's Lease is waited out, not released

	dynamic   dynamic.Interface
	resources []schema.GroupVersionResource
	baseline  snapshot // what was there before the story
	foreign   snapshot // those of it that no one may touch
	secrets   canary.Secrets

	repos map[string]*gitserver.Repo
	files map[string]map[string]string // of each repo, as they are in git
	heads map[string]string            // the newest commit of each
}

// newSite starts everything but the daemon, in a directory that goes with it.
func (l *lab) newSite(ctx context.Context) (_ *site, err error) {
	dir, err := l.MakeDir("site")
	if err != nil {
		return nil, err
	}
	s := &site{
		dir: dir, program: l.Program, tap: newTap(), baseline: snapshot{},
		repos: map[string]*gitserver.Repo{}, files: map[string]map[string]string{}, heads: map[string]string{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.cluster, err = l.Cluster(ctx, cluster.WithControllers)
	if err != nil {
		return nil, err
	}
	if err := s.openGit(); err != nil {
		return nil, err
	}
	if err := s.openAPI(ctx); err != nil {
		return nil, err
	}
	if err := s.makeForeign(ctx); err != nil {
		return nil, err
	}
	if err := s.secrets.Add(canary.Credential, gitPassword); err != nil {
		return nil, err
	}
	return s, s.configure()
}

// openGit starts the git server and the way to it, with empty repos.
func (s *site) openGit() (err error) {
	if s.git, err = gitserver.Launch(gitserver.WithDir(filepath.Join(s.dir, "git"))); err != nil {
		return err
	}
	if s.gitProxy, err = apiproxy.Launch(&rest.Config{Host: s.git.Base()}, apiproxy.Through(s.tap.through("git"))); err != nil {
		return err
	}
	for _, name := range repoNames() {
		if s.repos[name], err = s.git.CreateRepo(name); err != nil {
			return err
		}
	}
	return nil
}

// openAPI makes the daemon's way to the API server, as a ServiceAccount that RBAC
// holds for, and the site's own past it.
func (s *site) openAPI(ctx context.Context) error {
	account, err := testlab.Administrator(ctx, s.cluster, "kubesync")
	if err != nil {
		return err
	}
	if s.apiProxy, err = apiproxy.Launch(account.Config(), apiproxy.Through(s.tap.through("api"))); err != nil {
		return err
	}
	if err := s.apiProxy.Kubeconfig(s.kubeconfig()); err != nil {
		return err
	}
	if s.dynamic, err = dynamic.NewForConfig(s.cluster.Config()); err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(s.cluster.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	s.resources, err = resources(client)
	return err
}

func (s *site) kubeconfig() string { return filepath.Join(s.dir, "kubeconfig") }

// gitPassword is what the daemon tells the git server, and no one else.
const gitPassword = "known-to-git-alone"

// configure writes the daemon's list of repos.
func (s *site) configure() error {
	list := strings.NewReplacer("GIT", strings.Replace(s.gitProxy.URL(), "://", "://kubesync:"+gitPassword+"@", 1)).Replace(`
- {name: platform, url: GIT/platform.git, privileged: true}
- {name: tools, url: GIT/tools.git, privileged: true}
- {name: shop, url: GIT/shop.git, cmd: render.sh, namespace: shop}
`)
	if err := os.WriteFile(s.path("repos.yaml"), []byte(list), 0o644); err != nil {
		return fmt.Errorf("list of repos: %w", err)
	}
	return nil
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// releaseLease gives back what a killed daemon held, as the fifteen seconds would
// after which another takes it: nothing is proved by waiting for them every time.
func (s *site) releaseLease(ctx context.Context) error {
	leases := s.dynamic.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"})
	_, err := leases.Namespace("kube-system").Patch(ctx, leaseName, types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`), metav1.PatchOptions{})
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("release the Lease of a killed daemon: %w", err)
	}
	return nil
}

// close ends everything and leaves no trace.
func (s *site) close() error {
	if s.daemon != nil {
		s.daemon.Kill()
	}
	for _, proxy := range []*apiproxy.Proxy{s.apiProxy, s.gitProxy} {
		if proxy != nil {
			proxy.Close()
		}
	}
	var err error
	if s.git != nil {
		err = s.git.Close()
	}
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// discreet reports whether no daemon has printed a secret, whatever befell it.
func (s *site) discreet() error {
	var errs []error
	for _, name := range []string{"log", "stdout"} {
		content, err := os.ReadFile(s.path(name))
		if err != nil {
			return fmt.Errorf("output of kubesync: %w", err)
		}
		errs = append(errs, s.secrets.Search("the "+name, content))
	}
	return errors.Join(errs...)
}

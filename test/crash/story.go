package main

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

//go:embed story.txtar
var storyText []byte

// step is one of the things that happen, and from which the daemon has to come out
// in the same state whatever befalls it.
type step struct {
	name    string
	says    string
	trailer string // of its commits
	before  func(context.Context, *site) error
	// act is what happens, by default a push and a poll.
	act func(context.Context, *site, func() error) error
	// redone are the objects that a user deletes in this step and git brings back.
	redone []string
}

// steps tell the story in order.
func steps() []step {
	return []step{
		{name: "begin", says: "an empty cluster, a CRD and its objects in one revision", act: start},
		{name: "rights", says: "roles, and bindings that refer to them"},
		{name: "grow", says: "objects in all steps of the order"},
		{name: "change", says: "fields change, go, and a CRD does"},
		{name: "move", says: "objects change repos, both ways"},
		{name: "remove", says: "objects leave git"},
		{name: "rename", says: "a Namespace gets another name"},
		{name: "adopt", says: "what kubectl apply made is declared", before: applyByHand},
		{name: "transform", says: "the transform command is another"},
		{name: "purge", says: "an approved prune of more than the limit: a CRD, a claim, a Namespace and what was in it", trailer: "\n\nKubesync-Prune: approved\n"},
		{name: "restart", says: "stopped; changed by hand, and in git; started again", act: restart, redone: []string{"ConfigMap team/tools", "ConfigMap shop/apples"}},
	}
}

// repoNames are the repos of the story, as they are listed.
func repoNames() []string { return []string{"platform", "tools", "shop"} }

// revision returns what a step changes, by repo and path; an empty file goes.
func revision(name string) map[string]map[string]string {
	changed := map[string]map[string]string{}
	for _, file := range txtar.Parse(storyText).Files {
		at, rest, _ := strings.Cut(file.Name, "/")
		repo, path, ok := strings.Cut(rest, "/")
		if at != name || !ok {
			continue
		}
		if changed[repo] == nil {
			changed[repo] = map[string]string{}
		}
		changed[repo][path] = string(file.Data)
	}
	return changed
}

// storyFile returns one file of the archive.
func storyFile(name string) string {
	for _, file := range txtar.Parse(storyText).Files {
		if file.Name == name {
			return string(file.Data)
		}
	}
	return ""
}

// push commits what a step changes.
func (s *site) push(at step) error {
	changed := revision(at.name)
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		for path, content := range changed[name] {
			if s.files[name] == nil {
				s.files[name] = map[string]string{}
			}
			s.files[name][path] = content
			s.secrets.AddManifest([]byte(content))
			if content == "" {
				delete(s.files[name], path)
			}
		}
		hash, err := s.repos[name].Commit(at.name+at.trailer, s.files[name])
		if err != nil {
			return err
		}
		s.heads[name] = hash
	}
	return nil
}

// start is the first step: what is in git, and a daemon.
func start(_ context.Context, s *site, push func() error) error {
	if err := push(); err != nil {
		return err
	}
	return s.startDaemon()
}

// applyByHand makes objects as the shell script did.
func applyByHand(ctx context.Context, s *site) error {
	cmd := exec.CommandContext(ctx, s.cluster.Program("kubectl"), "--kubeconfig", s.cluster.Kubeconfig(), "apply", "-f", "-")
	cmd.Stdin, cmd.Env = strings.NewReader(storyFile("applied/legacy.yaml")), []string{"HOME=" + s.dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, out)
	}
	return nil
}

// restart is the last step: the daemon stops in order, and comes back to a cluster in
// which a user has changed a field, taken a label off and deleted an object.
func restart(ctx context.Context, s *site, push func() error) error {
	if err := s.stopDaemon(ctx); err != nil {
		return err
	}
	configMaps := s.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	services := s.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"})
	byHand := metav1.PatchOptions{FieldManager: "kubectl-edit"}
	for _, edit := range []func() error{
		func() error {
			_, err := configMaps.Namespace("team").Patch(ctx, "moving", types.MergePatchType, []byte(`{"data":{"text":"by hand","note":"by hand"}}`), byHand)
			return err
		},
		func() error {
			_, err := services.Namespace("team").Patch(ctx, "tools", types.MergePatchType, []byte(`{"metadata":{"labels":{"applyset.kubernetes.io/part-of":null}}}`), byHand)
			return err
		},
		func() error { return configMaps.Namespace("team").Delete(ctx, "tools", metav1.DeleteOptions{}) },
		func() error { return configMaps.Namespace("shop").Delete(ctx, "apples", metav1.DeleteOptions{}) },
		push,
	} {
		if err := edit(); err != nil {
			return fmt.Errorf("while the daemon is away: %w", err)
		}
	}
	return s.startDaemon()
}

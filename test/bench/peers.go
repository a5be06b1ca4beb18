package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubesync/kubesync/test/lab/process"
)

// inFlight is how many requests peers have under way at once: kubesync's default.
const inFlight = 16

// bareSSA sends each object of a set once and returns how long that took.
func bareSSA(ctx context.Context, s *site, objects set) (time.Duration, error) {
	c, err := dynamic.NewForConfig(s.peer.Config())
	if err != nil {
		return 0, fmt.Errorf("client of bare SSA: %w", err)
	}
	bodies := make([][]byte, len(objects.objects))
	for i, o := range objects.objects {
		if bodies[i], err = o.MarshalJSON(); err != nil {
			return 0, fmt.Errorf("bare SSA: %w", err)
		}
	}
	namespaces := slices.IndexFunc(objects.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
	start := time.Now()
	for _, step := range [][2]int{{0, namespaces}, {namespaces, len(bodies)}} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(inFlight)
		for i := step[0]; i < step[1]; i++ {
			group.Go(func() error { return patch(ctx, c, objects.objects[i], bodies[i]) })
		}
		if err := group.Wait(); err != nil {
			return 0, fmt.Errorf("bare SSA: %w", err)
		}
	}
	return time.Since(start), nil
}

func patch(ctx context.Context, c dynamic.Interface, o *unstructured.Unstructured, body []byte) error {
	resource := c.Resource(resourceOf(o.GroupVersionKind()))
	options := metav1.PatchOptions{FieldManager: "bare", Force: new(true)}
	var err error
	if o.GetNamespace() == "" {
		_, err = resource.Patch(ctx, o.GetName(), types.ApplyPatchType, body, options)
	} else {
		_, err = resource.Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, body, options)
	}
	return err
}

// fluxSSA applies a set as Flux's kustomize-controller does, with the library's
// default options, and returns how long that took.
func fluxSSA(ctx context.Context, s *site, objects set) (time.Duration, error) {
	log.SetLogger(logr.Discard()) // else it complains after 30 s, with a stack, that no one did
	c, err := client.New(s.peer.Config(), client.Options{})
	if err != nil {
		return 0, fmt.Errorf("client of fluxcd/pkg/ssa: %w", err)
	}
	poller := polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{})
	manager := ssa.NewResourceManager(c, poller, ssa.Owner{Field: "flux", Group: "bench.example.com"})
	manager.SetConcurrency(inFlight)
	given := objects.clone()
	start := time.Now()
	if _, err := manager.ApplyAllStaged(ctx, given, ssa.DefaultApplyOptions()); err != nil {
		return 0, fmt.Errorf("fluxcd/pkg/ssa: %w", err)
	}
	return time.Since(start), nil
}

// kubectlSSA runs kubectl apply --server-side on the files of a set.
func (l *lab) kubectlSSA(ctx context.Context, s *site, objects set) (time.Duration, error) {
	dir, err := l.MakeDir("kubectl")
	if err != nil {
		return 0, err
	}
	if err := writeFiles(dir, objects.files); err != nil {
		return 0, err
	}
	e, err := toEnd(ctx, process.Spec{
		Program: s.Program("kubectl"),
		Args:    []string{"apply", "--server-side", "--kubeconfig=" + s.peer.Kubeconfig, "--recursive", "--filename=" + filepath.Join(dir, "kubernetes")},
		Env:     []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Dir:     dir, Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr"),
	})
	return e.took, err
}

// writeFiles writes files below a directory.
func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("writing manifests: %w", err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing manifests: %w", err)
		}
	}
	return nil
}

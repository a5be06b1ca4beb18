package cluster

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Names of the programs of a control plane, as files in Binaries.Dir.
const (
	etcdProgram       = "etcd"
	etcdctlProgram    = "etcdctl"
	etcdutlProgram    = "etcdutl"
	apiServerProgram  = "kube-apiserver"
	controllerProgram = "kube-controller-manager"
	schedulerProgram  = "kube-scheduler"
	kubectlProgram    = "kubectl"
)

// programs maps each program to the name `go build tool` gives it.
func programs() map[string]string {
	return map[string]string{
		etcdProgram:       "server", // its main package is go.etcd.io/etcd/server/v3
		etcdctlProgram:    etcdctlProgram,
		etcdutlProgram:    etcdutlProgram,
		apiServerProgram:  apiServerProgram,
		controllerProgram: controllerProgram,
		schedulerProgram:  schedulerProgram,
		kubectlProgram:    kubectlProgram,
	}
}

// Binaries is a folder that holds the programs of a control plane and kubectl.
type Binaries struct{ Dir string }

// Path returns where the program name is.
func (b Binaries) Path(name string) string { return filepath.Join(b.Dir, name) }

// missing returns the programs that b lacks.
func (b Binaries) missing() []string {
	var names []string
	for name := range programs() {
		if info, err := os.Stat(b.Path(name)); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Ways to get the programs, the values of CONTROLPLANE.
const (
	auto         = "auto"     // download, and build if that fails
	downloadOnly = "download" // fail if it does
	buildOnly    = "build"    // from source
)

// Versions of Kubernetes, the values of KUBERNETES.
const (
	newest = "newest" // what test/controlplane pins
	oldest = "oldest" // the oldest that kubesync supports: the folder of that name there
)

// FindBinaries returns the control plane's programs, of the newest Kubernetes or, under
// KUBERNETES=oldest, of the oldest that is supported. KUBEBUILDER_ASSETS names a folder
// with ready ones, as it does for controller-runtime's envtest. Without it they are put
// into the user's cache folder, once for each version: downloaded, as the Go module
// test/controlplane pins them in releases.txt, or built from its go.mod, or the latter if
// the former fails (CONTROLPLANE=download, build, auto; auto is the default). A build takes
// minutes and says on progress how far it is. Any number of processes may ask at once: one
// gets them, the others wait.
func FindBinaries(ctx context.Context, progress io.Writer) (Binaries, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		b := Binaries{Dir: dir}
		if missing := b.missing(); len(missing) > 0 {
			return Binaries{}, fmt.Errorf("KUBEBUILDER_ASSETS=%s lacks %s; add them, or unset it to have all downloaded or built",
				dir, strings.Join(missing, ", "))
		}
		return b, nil
	}
	way := cmp.Or(os.Getenv("CONTROLPLANE"), auto)
	if !slices.Contains([]string{auto, downloadOnly, buildOnly}, way) {
		return Binaries{}, fmt.Errorf("CONTROLPLANE=%s: want %s, %s or %s", way, auto, downloadOnly, buildOnly)
	}
	version := cmp.Or(os.Getenv("KUBERNETES"), newest)
	if version != newest && version != oldest {
		return Binaries{}, fmt.Errorf("KUBERNETES=%s: want %s or %s", version, newest, oldest)
	}
	module, err := moduleDir(ctx)
	if err != nil {
		return Binaries{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Binaries{}, fmt.Errorf("no folder for the control plane's programs: %w", err)
	}
	f := finder{module: module, cache: filepath.Join(cache, "kubesync", "controlplane"), progress: progress, patience: patience}
	bin, err := f.find(ctx, way)
	if err != nil || version == newest {
		return bin, err
	}
	f.module, f.others = filepath.Join(module, oldest), bin
	return f.find(ctx, way)
}

// finder gets the programs of a control plane.
type finder struct {
	module   string   // directory of the Go module that pins them
	others   Binaries // has those that the module does not pin; none if it pins all
	cache    string   // directory, with one of each version
	progress io.Writer
	patience time.Duration // with a server that says nothing
}

// find returns the programs, out of the cache if they are there.
func (f finder) find(ctx context.Context, way string) (Binaries, error) {
	released, err := f.dir("released-", "", "releases.txt")
	if err != nil {
		return Binaries{}, err
	}
	built, err := f.dir("", runtime.Version(), "go.mod", "go.sum")
	if err != nil {
		return Binaries{}, err
	}
	ready := func() (Binaries, bool) {
		for _, one := range []struct{ dir, notFor string }{{released, buildOnly}, {built, downloadOnly}} {
			if b := (Binaries{Dir: one.dir}); way != one.notFor && len(b.missing()) == 0 {
				return b, true
			}
		}
		return Binaries{}, false
	}
	if b, found := ready(); found {
		return b, nil
	}
	if err := os.MkdirAll(f.cache, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("folder for the control plane's programs: %w", err)
	}
	unlock, err := lockFile(ctx, filepath.Join(f.cache, "lock"))
	if err != nil {
		return Binaries{}, err
	}
	defer unlock()
	if b, found := ready(); found {
		return b, nil // by whoever held the lock
	}
	if way != buildOnly {
		err := f.fill(ctx, released, f.download)
		if err == nil || way == downloadOnly || ctx.Err() != nil {
			return Binaries{Dir: released}, err
		}
		fmt.Fprintf(f.progress, "%v\n", err)
	}
	return Binaries{Dir: built}, f.fill(ctx, built, f.build)
}

// moduleDir returns the directory of the module test/controlplane. The compiler
// knows it, except under -trimpath, where the working directory has to be in the
// checkout (as it is in tests).
func moduleDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		return filepath.Join(filepath.Dir(file), "..", "..", "controlplane"), nil
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubesync/kubesync").Output()
	if err != nil {
		return "", fmt.Errorf("finding the checkout of kubesync with go list: %w", withStderr(err))
	}
	return filepath.Join(strings.TrimSpace(string(out)), "test", "controlplane"), nil
}

// withStderr adds to the error of a failed command what it said.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// dir returns the folder for the programs of the versions that files of the module pin,
// made by a toolchain, and of the others.
func (f finder) dir(prefix, toolchain string, files ...string) (string, error) {
	hash := sha256.New()
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(f.module, name))
		if err != nil {
			return "", fmt.Errorf("version of the control plane: %w", err)
		}
		hash.Write(content)
	}
	fmt.Fprint(hash, f.others.Dir)
	fmt.Fprintln(hash, toolchain, runtime.GOOS, runtime.GOARCH)
	return filepath.Join(f.cache, prefix+hex.EncodeToString(hash.Sum(nil))[:16]), nil
}

// fill gets all programs into dir. They are put into a folder beside dir that is renamed
// when all are there, so that dir is complete whenever it exists, however that ended. The
// caller holds the lock.
func (f finder) fill(ctx context.Context, dir string, get func(context.Context, string) error) error {
	partial := dir + ".partial"
	for _, stale := range []string{partial, dir} {
		if err := os.RemoveAll(stale); err != nil {
			return fmt.Errorf("removing an unfinished control plane: %w", err)
		}
	}
	if err := os.Mkdir(partial, 0o755); err != nil {
		return fmt.Errorf("folder for the control plane's programs: %w", err)
	}
	if err := get(ctx, partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := f.complete(Binaries{Dir: partial}); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(partial, dir); err != nil {
		return fmt.Errorf("keeping the control plane's programs: %w", err)
	}
	return nil
}

// complete adds the others to what a module has: as links, in the same cache folder.
func (f finder) complete(b Binaries) error {
	for _, name := range b.missing() {
		if f.others == (Binaries{}) {
			return fmt.Errorf("%s does not pin %s for %s/%s", f.module, name, runtime.GOOS, runtime.GOARCH)
		}
		if err := os.Link(f.others.Path(name), b.Path(name)); err != nil {
			return fmt.Errorf("taking over %s: %w", name, err)
		}
	}
	return nil
}

// lockFile waits for the lock on path and returns the function that releases
// it. The kernel releases it too when the process dies.
func lockFile(ctx context.Context, path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock for the control plane's programs: %w", err)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("another process is still getting the control plane (%s): %w", path, context.Cause(ctx)), file.Close())
		case <-tick.C:
		}
	}
}

// build compiles the tools of the module into dir under the names that programs
// gives.
func (f finder) build(ctx context.Context, dir string) error {
	fmt.Fprintln(f.progress, "building the control plane from source: minutes the first time, once per version")
	// -v prints one line a package that was not in Go's build cache.
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/", "tool")
	cmd.Dir = f.module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	said := report(stderr, f.progress)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("building the control plane in %s: %w\n%s", f.module, err, said)
	}
	for program, built := range programs() {
		if program == built {
			continue
		}
		err := os.Rename(filepath.Join(dir, built), filepath.Join(dir, program))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // one of the others
			return fmt.Errorf("naming %s: %w", program, err)
		}
	}
	fmt.Fprintln(f.progress, "built the control plane")
	return nil
}

// report reads what go build -v says until it ends, tells progress every ten
// seconds how many packages were compiled, and returns the last lines, which
// hold the error if there is one.
func report(said io.Reader, progress io.Writer) string {
	start := time.Now()
	next := start.Add(10 * time.Second)
	var tail []string
	count := 0
	for scanner := bufio.NewScanner(said); scanner.Scan(); {
		tail = append(tail, scanner.Text())
		if len(tail) > 20 {
			tail = tail[1:]
		}
		if strings.HasPrefix(scanner.Text(), "go: ") {
			continue // a download
		}
		count++
		if now := time.Now(); now.After(next) {
			next = now.Add(10 * time.Second)
			// 2,000 is what v1.36 has, roughly; the linking comes after.
			fmt.Fprintf(progress, "building the control plane: %d of about 2000 packages after %s\n", count, now.Sub(start).Round(time.Second))
		}
	}
	return strings.Join(tail, "\n")
}

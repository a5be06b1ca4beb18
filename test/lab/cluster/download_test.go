package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/lines"
)

// archived are the programs that come in an archive.
func archived() []string { return []string{etcdProgram, etcdctlProgram, etcdutlProgram} }

// files are what a server of releases has, by path: each program says its name.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	script := func(name string) []byte { return []byte("#!/bin/sh\necho " + name + "\n") }
	all := map[string][]byte{}
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	archive := tar.NewWriter(zip)
	for name := range programs() {
		if !slices.Contains(archived(), name) {
			all["/v1/"+name] = script(name)
			continue
		}
		header := tar.Header{Name: "etcd-v1/" + name, Mode: 0o755, Size: int64(len(script(name))), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(script(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	all["/v1/etcd.tar.gz"] = zipped.Bytes()
	return all
}

// pin writes releases.txt for what a server has.
func pin(t *testing.T, module, server string, files map[string][]byte) {
	t.Helper()
	text := "# all of them\nplan9/mips 00 " + server + "/v1/other\n"
	for path, content := range files {
		sum := sha256.Sum256(content)
		text += fmt.Sprintf("%s/%s %s %s%s\n", runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum[:]), server, path)
	}
	write(t, filepath.Join(module, "releases.txt"), text)
}

// server serves files; answer may answer instead, and then returns true.
func server(t *testing.T, files map[string][]byte, answer func(http.ResponseWriter, *http.Request) bool) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if answer == nil || !answer(w, r) {
			_, _ = w.Write(files[r.URL.Path])
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// TestDownload holds that released programs are downloaded once, and run.
func TestDownload(t *testing.T) {
	t.Parallel()
	all := files(t)
	redirect := func(w http.ResponseWriter, r *http.Request) bool { // as real ones do
		moved := strings.HasPrefix(r.URL.Path, "/v1/kube-") && r.URL.RawQuery == ""
		if moved {
			http.Redirect(w, r, r.URL.Path+"?moved", http.StatusFound)
		}
		return moved
	}
	url, requests := server(t, all, redirect)
	f := in(t, smallModule(t, "no such function()"), io.Discard)
	pin(t, f.module, url, all)
	bin, err := f.find(t.Context(), auto)
	if err != nil {
		t.Fatal(err)
	}
	for name := range programs() {
		if said, err := exec.CommandContext(t.Context(), bin.Path(name)).Output(); err != nil || strings.TrimSpace(string(said)) != name {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
	before := requests.Load()
	for _, way := range []string{auto, downloadOnly} {
		if again, err := f.find(t.Context(), way); err != nil || again != bin {
			t.Errorf("%s again: got %v, %v; want %v", way, again, err, bin)
		}
	}
	if requests.Load() != before {
		t.Error("what is in the cache is downloaded again")
	}
	if left, err := os.ReadDir(bin.Dir); err != nil || len(left) != len(programs()) {
		t.Errorf("there are %v, %v", left, err)
	}
	if _, err := f.find(t.Context(), buildOnly); err == nil || !strings.Contains(err.Error(), "syntax error") {
		t.Errorf("a release is taken for what was built: %v", err)
	}
}

// TestDownloadFails holds that a download that fails says so, names the address, and leaves
// nothing.
func TestDownloadFails(t *testing.T) {
	t.Parallel()
	of := func(name string, answer func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if path := filepath.Base(r.URL.Path); path != name {
				return false
			}
			answer(w, r)
			return true
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"another program": {of(kubectlProgram, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "#!/bin/sh\necho malice\n")
		}), `/v1/kubectl: its SHA-256 sum is [0-9a-f]{64}, not [0-9a-f]{64} .*it is not used`},
		"another archive": {of("etcd.tar.gz", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "no archive")
		}), `/v1/etcd\.tar\.gz: its SHA-256 sum is`},
		"not there": {of(apiServerProgram, http.NotFound), `/v1/kube-apiserver: 404 Not Found`},
		"half of it": {of(schedulerProgram, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "#!/bin/sh\n")
		}), `/v1/kube-scheduler: unexpected EOF`},
		"no answer": {of(controllerProgram, silent), `/v1/kube-controller-manager: nothing came for 1s`},
		"silent in the middle": {of(controllerProgram, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "#!/bin/sh\n")
			w.(http.Flusher).Flush()
			silent(w, r)
		}), `/v1/kube-controller-manager: nothing came for 1s`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := files(t)
			url, _ := server(t, all, c.answer)
			f := in(t, smallModule(t, ""), io.Discard)
			f.patience = time.Second
			pin(t, f.module, url, all)
			want := regexp.MustCompile(regexp.QuoteMeta(url) + c.want)
			if _, err := f.find(t.Context(), downloadOnly); err == nil || !want.MatchString(err.Error()) {
				t.Errorf("got %v, want %s", err, want)
			}
			if left, err := os.ReadDir(f.cache); err != nil || len(left) != 1 { // the lock
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// TestWhatCannotBeDownloadedIsBuilt holds that it is, once, and said why.
func TestWhatCannotBeDownloadedIsBuilt(t *testing.T) {
	t.Parallel()
	all := files(t)
	url, requests := server(t, all, func(w http.ResponseWriter, r *http.Request) bool {
		http.NotFound(w, r)
		return true
	})
	var progress lines.Log
	f := in(t, smallModule(t, ""), &progress)
	pin(t, f.module, url, all)
	bin, err := f.find(t.Context(), auto)
	if err != nil || len(bin.missing()) > 0 || strings.Contains(bin.Dir, "released-") {
		t.Fatalf("got %v, %v", bin, err)
	}
	if said := progress.String(); !strings.Contains(said, "404 Not Found") || !strings.Contains(said, "from source") {
		t.Errorf("got %s", said)
	}
	if again, err := f.find(t.Context(), auto); err != nil || again != bin || requests.Load() != 1 {
		t.Errorf("again: got %v, %v after %d requests", again, err, requests.Load())
	}
}

// TestASlowDownloadIsNoSilentOne holds that patience is with silence, not with slowness.
func TestASlowDownloadIsNoSilentOne(t *testing.T) {
	t.Parallel()
	all := files(t)
	slow := func(w http.ResponseWriter, r *http.Request) bool {
		if filepath.Base(r.URL.Path) != kubectlProgram {
			return false
		}
		for _, b := range all[r.URL.Path] {
			_, _ = w.Write([]byte{b})
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
		return true
	}
	url, _ := server(t, all, slow)
	f := in(t, smallModule(t, ""), io.Discard)
	f.patience = 2 * time.Second
	pin(t, f.module, url, all)
	if _, err := f.find(t.Context(), downloadOnly); err != nil {
		t.Error(err)
	}
}

// TestReleasesAreThoseThatAreBuilt holds that what is downloaded has the versions of what
// is built, and that nothing is missing on the platforms that are named.
func TestReleasesAreThoseThatAreBuilt(t *testing.T) {
	t.Parallel()
	module, err := moduleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for dir, programs := range map[string][]string{
		module:                        slices.Collect(maps.Keys(programs())),
		filepath.Join(module, oldest): {apiServerProgram, controllerProgram, schedulerProgram},
	} {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := releases(dir)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string][]string{}
		for _, r := range all {
			if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(r.sum) {
				t.Errorf("%s has the sum %q", r.url, r.sum)
			}
			if r.name() != strings.TrimSuffix(r.name(), ".tar.gz") {
				names[r.platform] = append(names[r.platform], archived()...)
			} else {
				names[r.platform] = append(names[r.platform], r.name())
			}
			of := `k8s\.io/kubernetes`
			if strings.Contains(r.url, "etcd") {
				of = `go\.etcd\.io/etcd/server/v3`
			}
			version := regexp.MustCompile(of + ` (v\S+)`).FindSubmatch(mod)
			if version == nil || !strings.Contains(r.url, "/"+string(version[1])+"/") {
				t.Errorf("%s is not %s, which is built", r.url, version)
			}
		}
		for _, platform := range []string{"linux/amd64", "linux/arm64"} {
			for _, name := range programs {
				if !slices.Contains(names[platform], name) {
					t.Errorf("%s: there is no %s for %s", dir, name, platform)
				}
			}
		}
	}
}

func TestUnknownWayIsRefused(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	for name, want := range map[string]string{
		"CONTROLPLANE": "want auto, download or build",
		"KUBERNETES":   "want newest or oldest",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "borrow")
			if _, err := FindBinaries(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

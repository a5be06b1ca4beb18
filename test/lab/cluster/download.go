package cluster

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// patience is how long a server may be silent, before its answer and during it.
const patience = 20 * time.Second

// mostBytes bounds a download; the largest has a tenth of it.
const mostBytes = 1 << 30

// release is a released program, or an archive with some.
type release struct{ platform, sum, url string }

// name is the last part of its address.
func (r release) name() string { return path.Base(r.url) }

// releases reads releases.txt in a module's directory: a line each, "PLATFORM SHA256 URL";
// # begins a comment.
func releases(module string) ([]release, error) {
	content, err := os.ReadFile(filepath.Join(module, "releases.txt"))
	if err != nil {
		return nil, fmt.Errorf("releases of the control plane: %w", err)
	}
	var all []release
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		switch words := strings.Fields(line); len(words) {
		case 0:
		case 3:
			all = append(all, release{platform: words[0], sum: words[1], url: words[2]})
		default:
			return nil, fmt.Errorf("releases of the control plane: want PLATFORM SHA256 URL: %q", line)
		}
	}
	return all, nil
}

// download gets the released programs for this platform into dir, one after the other. It
// gives up on the first that does not come, or is not the one whose sum is in the tree.
func (f finder) download(ctx context.Context, dir string) error {
	all, err := releases(f.module)
	if err != nil {
		return err
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, r := range all {
		if r.platform != platform {
			continue
		}
		if err := f.get(ctx, r, dir); err != nil {
			return err
		}
	}
	return nil
}

// get downloads one release. Nothing of it has its name in dir before its sum is right.
func (f finder) get(ctx context.Context, r release, dir string) error {
	part := filepath.Join(dir, r.name()+".part")
	sum, err := f.fetch(ctx, r, part)
	if err != nil {
		return fmt.Errorf("download %s: %w", r.url, err)
	}
	if sum != r.sum {
		return fmt.Errorf("download %s: its SHA-256 sum is %s, not %s as releases.txt says; it is not used", r.url, sum, r.sum)
	}
	if !strings.HasSuffix(r.url, ".tar.gz") {
		return errors.Join(os.Chmod(part, 0o755), os.Rename(part, filepath.Join(dir, r.name())))
	}
	if err := unpack(part, dir); err != nil {
		return fmt.Errorf("unpack %s: %w", r.name(), err)
	}
	return os.Remove(part)
}

// fetch writes what a server answers into a file, and returns its SHA-256 sum.
func (f finder) fetch(ctx context.Context, r release, to string) (_ string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(f.patience, func() { cancel(fmt.Errorf("nothing came for %s", f.patience)) })
	defer silent.Stop()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	file, err := os.Create(to)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	fmt.Fprintf(f.progress, "downloading %s (%d MB)\n", r.name(), response.ContentLength>>20)
	hash := sha256.New()
	body := io.TeeReader(io.LimitReader(response.Body, mostBytes), alive(func() { silent.Reset(f.patience) }))
	if _, err := io.Copy(io.MultiWriter(file, hash), body); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// alive is called whenever something was read.
type alive func()

func (a alive) Write(b []byte) (int, error) { a(); return len(b), nil }

// unpack takes the programs of a control plane out of an archive.
func unpack(archive, dir string) (err error) {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	wanted := programs()
	for members := tar.NewReader(unzipped); ; {
		member, err := members.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Base(member.Name)
		if _, ok := wanted[name]; !ok || member.Typeflag != tar.TypeReg {
			continue
		}
		if err := save(members, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
}

// save writes a program into a file.
func save(from io.Reader, to string) error {
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(from, mostBytes))
	return errors.Join(err, file.Close())
}

package transform

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/transform/confine"
)

// maxQuestions bounds the bytes of the helper's questions.
const maxQuestions = 64 << 20

// What the helper that builds a kustomization says to the daemon: it asks about a
// path of the tree, or, in the end, reports the result.
type (
	// order is what the daemon says first.
	order struct {
		Dir  string // resolved
		File string // the name of the kustomization in it
		What string // what the tree is called
		Most plenty
	}
	// plenty is what the helper may use and return, in bytes.
	plenty   struct{ Memory, Manifests int64 }
	question struct {
		Do     action
		Path   string // any path below the tree's root; links are followed
		Result *built
	}
	answer struct {
		Path    string // resolved
		IsDir   bool
		Data    []byte
		Names   []string
		Missing bool
		Failure string // empty if all went well
	}
	action int
)

const (
	doStat action = iota
	doRead
	doList
	doFinish
)

// built is what the helper made of a kustomization.
type built struct {
	Documents []document
	// Failure is why it could not be built, for a person to read.
	Failure string
	// TooMuch is the size of the documents, in bytes, if that is why they are not here.
	TooMuch int64
}

// size returns the bytes of all documents.
func (b built) size() int64 {
	size := int64(0)
	for _, doc := range b.Documents {
		size += int64(len(doc.YAML))
	}
	return size
}

// document is one object of the result.
type document struct {
	Path string // of the file in the tree that it was built from
	YAML []byte
}

// kustomize builds the kustomization in a directory, given by its resolved name. The
// helper's warnings come back as notes.
func (t *Transform) kustomize(ctx context.Context, from tree, dir, file string) (map[string][]byte, []string, error) {
	if err := from.fetchKustomization(ctx, path.Join(dir, file)); err != nil {
		return nil, nil, err
	}
	ctx, cancel := t.bounded(ctx)
	defer cancel()
	out := confine.NewOutput(t.options.Log)
	most := plenty{Memory: t.options.Limits.Of(limits.KustomizeMemory), Manifests: t.options.Limits.Of(limits.Manifests)}
	result, err := confine.Talk(ctx, kustomizeHelper, out, func(in io.Reader, to io.WriteCloser) (built, error) {
		return serve(in, to, from, order{Dir: dir, File: file, What: from.what, Most: most})
	})
	name := path.Join(dir, file)
	switch {
	case confine.OutOfMemory(err):
		return nil, nil, t.options.Limits.Exceeded(limits.KustomizeMemory, "kustomize, building "+name, 0)
	case result.TooMuch > 0:
		return nil, nil, t.options.Limits.Exceeded(limits.Manifests, "what kustomize builds of "+name, result.TooMuch)
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("build %s with kustomize: %w", name, context.Cause(ctx))
	case result.Failure != "": // goes before what became of the helper then
		return nil, nil, fmt.Errorf("build %s with kustomize: %s", name, result.Failure)
	case err != nil:
		return nil, nil, fmt.Errorf("build %s with kustomize: %w%s", name, err, out.Quote())
	}
	var notes []string
	for _, line := range out.Lines() {
		if text, ok := strings.CutPrefix(line, "# Warning: "); ok {
			notes = append(notes, fmt.Sprintf("%s: %s", name, text))
		}
	}
	return join(result.Documents), notes, nil
}

// join makes files of documents: those with the same path, in their order, are one.
func join(documents []document) map[string][]byte {
	texts := map[string][]byte{}
	for _, doc := range documents {
		if text, ok := texts[doc.Path]; ok {
			texts[doc.Path] = append(append(text, "---\n"...), doc.YAML...)
		} else {
			texts[doc.Path] = append([]byte(nil), doc.YAML...)
		}
	}
	return texts
}

// serve gives the helper its order and answers its questions about the tree until it
// reports the result.
func serve(in io.Reader, to io.Writer, from tree, todo order) (built, error) {
	// The helper holds to what it may return; one that a kustomization has got into its
	// power would not.
	in = io.LimitReader(in, 2*todo.Most.Manifests+maxQuestions)
	encoder, decoder := gob.NewEncoder(to), gob.NewDecoder(in)
	if err := encoder.Encode(todo); err != nil {
		return built{}, err
	}
	for {
		var ask question
		if err := decoder.Decode(&ask); err != nil {
			return built{}, fmt.Errorf("it ended without a result: %w", err)
		}
		if ask.Do == doFinish && ask.Result != nil {
			return *ask.Result, nil
		}
		if err := encoder.Encode(from.answer(ask)); err != nil {
			return built{}, err
		}
	}
}

// answer looks up what the helper asks about.
func (t tree) answer(ask question) answer {
	resolved, info, err := t.stat(ask.Path)
	reply := answer{Path: resolved}
	if err == nil {
		reply.IsDir = info.IsDir()
		switch ask.Do {
		case doRead:
			reply.Data, err = t.readSource(resolved)
		case doList:
			var entries []fs.DirEntry
			entries, err = fs.ReadDir(t.fsys, resolved)
			for _, entry := range entries {
				reply.Names = append(reply.Names, entry.Name())
			}
		}
	}
	if err != nil {
		reply.Missing = cannotExist(err)
		reply.Failure = err.Error()
	}
	return reply
}

// readSource reads a file for kustomize, which would take a pointer of Git LFS for
// YAML of an unknown kind.
func (t tree) readSource(resolved string) ([]byte, error) {
	data, err := t.readFile(resolved)
	if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")) {
		return nil, fmt.Errorf("%s is a Git LFS pointer: kubesync fetches no LFS objects, commit the file itself", resolved)
	}
	return data, err
}

// cannotExist reports whether an error says that there is no such file, also because the
// path is impossible: kustomize tries whole documents as paths.
func cannotExist(err error) bool {
	for _, reason := range []error{fs.ErrNotExist, fs.ErrInvalid, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EINVAL} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// newRepo makes a repository with one commit on the lab's git server and returns
// its URL.
func (l *lab) newRepo(name string, files map[string]string) (string, error) {
	repo, err := l.git.CreateRepo(name)
	if err != nil {
		return "", err
	}
	if _, err := repo.Commit("Start", files); err != nil {
		return "", err
	}
	return l.git.URL(name), nil
}

// newSet generates a set of so many objects and makes a repository of it.
func (l *lab) newSet(repo string, generate func(seed uint64, size int) (set, error), size int) (set, string, error) {
	objects, err := generate(l.seed, size)
	if err != nil {
		return set{}, "", err
	}
	url, err := l.newRepo(repo, objects.files)
	return objects, url, err
}

// newLargeRepo makes a repository that holds some manifests and, below src, so
// many other files. It is streamed into git, since a work tree of that size would
// take minutes.
func (l *lab) newLargeRepo(ctx context.Context, name string, manifests map[string]string, others int) (string, error) {
	repo, err := l.git.CreateRepo(name)
	if err != nil {
		return "", err
	}
	err = gitReading(ctx, repo.Bare, func(w io.Writer) error {
		fmt.Fprint(w, "commit refs/heads/master\ncommitter Ada <ada@example.com> 1767225600 +0000\ndata 5\nStart\n")
		for file, content := range manifests {
			writeBlob(w, file, content)
		}
		g := newGenerator(l.seed)
		raw := make([]byte, l.fileBytes*3/4) // what base64 makes of it is a quarter less than it could be compressed to
		for i := range others {
			for b := range raw {
				raw[b] = byte(g.random.Uint32())
			}
			writeBlob(w, path.Join("src", fmt.Sprintf("module-%02d/package-%04d/file-%06d.txt", i%20, i/100, i)),
				base64.StdEncoding.EncodeToString(raw))
		}
		return nil
	}, "-c", "pack.compression=1", "fast-import", "--quiet", "--depth=0")
	return l.git.URL(name), err
}

func writeBlob(w io.Writer, file, content string) {
	fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", file, len(content), content)
}

// addRefs adds branches and tags, as many of each, to a repository of the lab's
// git server.
func (l *lab) addRefs(ctx context.Context, name string, refs int) error {
	repo := path.Join(l.git.Dir(), name+".git")
	head, err := exec.CommandContext(ctx, "git", "--git-dir="+repo, "rev-parse", "master").Output()
	if err != nil {
		return fmt.Errorf("refs of %s: %w", name, err)
	}
	err = gitReading(ctx, repo, func(w io.Writer) error {
		for i := range refs {
			fmt.Fprintf(w, "create refs/%s-%06d %s", []string{"heads/feature", "tags/release"}[i%2], i, head)
		}
		return nil
	}, "update-ref", "--stdin")
	if err != nil {
		return err
	}
	return gitReading(ctx, repo, func(io.Writer) error { return nil }, "pack-refs", "--all")
}

// gitReading runs git in a bare repository with what write writes as its input.
func gitReading(ctx context.Context, repo string, write func(io.Writer) error, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + repo}, args...)...)
	input, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	buffered := bufio.NewWriterSize(input, 1<<20)
	written := write(buffered)
	if err := buffered.Flush(); written == nil {
		written = err
	}
	_ = input.Close()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return written
}

// pollCosts is what a repository's server saw of polls that found nothing new.
type pollCosts struct {
	polls    int
	requests int
	bytes    int // of questions, unpacked, and answers, without HTTP's headers
}

// pollsOf counts the whole polls of a repository in a log: what came after the
// first, up to the last. In protocol v2 a poll is known by its question for refs,
// before that by the advertisement of them.
func pollsOf(log []gitserver.Request, repo string) (pollCosts, error) {
	var asked []gitserver.Request
	kinds := map[gitserver.Kind]int{}
	for _, r := range log {
		if strings.HasPrefix(r.Path, "/"+repo+".git/") {
			asked = append(asked, r)
			kinds[r.Kind]++
		}
	}
	poll := gitserver.ListRefs
	if kinds[poll] == 0 {
		poll = gitserver.Advertise
	}
	if kinds[poll] < 2 {
		return pollCosts{}, fmt.Errorf("the git server saw %d polls of %s: too few to tell", kinds[poll], repo)
	}
	var seen pollCosts
	begun, pending := false, pollCosts{}
	for _, r := range asked {
		if begun {
			pending.requests++
			pending.bytes += len(r.Body) + r.Bytes
		}
		if r.Kind == poll {
			if begun {
				pending.polls++
				seen = pending
			}
			begun = true
		}
	}
	return seen, nil
}

// requestsEach is how many requests a poll took.
func (p pollCosts) requestsEach() float64 { return float64(p.requests) / float64(p.polls) }

// bytesEach is how many bytes a poll took.
func (p pollCosts) bytesEach() float64 { return float64(p.bytes) / float64(p.polls) }

// line holds the polls against what they are to be.
func (p pollCosts) line() line {
	l := within("git requests a poll", p.requestsEach(), 1, func(f float64) string { return fmt.Sprintf("%.3g", f) })
	l.ours += fmt.Sprintf(" (%d polls, %.0f bytes each)", p.polls, p.bytesEach())
	l.target = "1"
	return l
}

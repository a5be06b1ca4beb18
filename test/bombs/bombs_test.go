//go:build !race

package bombs

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/build"
)

// mostMemory is what the program may take, in kB.
const mostMemory = 300_000_000 / 1024

// program is the path of the program that is tested, once it is built. That is the
// business of the tests: what TestMain looks at counts for no cached result.
var (
	program string
	built   = sync.OnceValue(func() error { return build.Kubesync(context.Background(), program) })
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == launcher {
		os.Exit(launch())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	where, err := os.MkdirTemp("", "bombs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(where)
	program = filepath.Join(where, "kubesync")
	return m.Run()
}

// manifest is the least there is to an object.
const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"

// custom is one of a kind that no schema is known of: it may hold anything.
const custom = "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a, namespace: default}\n"

// single is a repository with one file.
func single(name, content string) func(*pack) {
	return func(p *pack) { p.commit(p.tree(entry{file, name, p.add(blob, []byte(content))})) }
}

// small is a good manifest beside what goes off.
func (p *pack) small() id { return p.add(blob, []byte(manifest)) }

// gigabyte is what a large file has.
const gigabyte = 1 << 30

// nested opens so many levels.
func nested(opening, inside, closing string, levels int) string {
	return manifest + "data:\n  " + strings.Repeat(opening, levels) + inside + strings.Repeat(closing, levels) + "\n"
}

// blocks nests so many mappings or lists by indentation.
func blocks(line string, levels int) string {
	var b strings.Builder
	b.WriteString(manifest + "data:\n")
	for i := range levels {
		fmt.Fprintf(&b, "%*s%s\n", i+1, "", line)
	}
	return b.String()
}

// laughs is a text in which each alias stands for ten of the one before.
func laughs(levels int) string {
	var b strings.Builder
	b.WriteString(manifest + "data:\n  x0: &x0 lol\n")
	for i := range levels {
		fmt.Fprintf(&b, "  x%d: &x%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d,", i), 10), ","))
	}
	return b.String()
}

// many repeats a line with its number.
func many(format string, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// levels nests directories that hold the same one so many times, down to a file.
func levels(p *pack, inside entry, width, depth int) id {
	at := p.tree(inside)
	for range depth {
		var entries []entry
		for i := range width {
			entries = append(entries, entry{dir, fmt.Sprintf("d%03d", i), at})
		}
		at = p.tree(entries...)
	}
	return at
}

// script is a CMD that passes on one manifest.
const script = "#!/bin/sh\nset -e\ncp a.yaml $OUTDIR/\n"

// bomb is a repository, and what becomes of it.
type bomb struct {
	make func(*pack)
	env  []string
	disk bool   // it is read from disk; else from a server
	want string // part of the message; empty: it is planned
}

// bombs are all of them, by name.
func bombs() map[string]bomb {
	withScript := func(p *pack, more ...entry) {
		p.commit(p.tree(append([]entry{{file, "a.yaml", p.small()}, {executable, "cmd.sh", p.add(blob, []byte(script))}}, more...)...))
	}
	cmd := []string{"CMD=./cmd.sh", "CMD_SANDBOX=off"}
	// A helper's peak counts as well; by default it may take more than the daemon.
	lean := []string{"LIMITS=kustomize-memory=128Mi"}
	kustomization := func(text string, more ...string) func(*pack) {
		return func(p *pack) {
			entries := []entry{{file, "kustomization.yaml", p.add(blob, []byte(text))}}
			for i := 0; i < len(more); i += 2 {
				entries = append(entries, entry{file, more[i], p.add(blob, []byte(more[i+1]))})
			}
			p.commit(p.tree(entries...))
		}
	}
	return map[string]bomb{
		"a good one":         {make: single("a.yaml", manifest)},
		"a good one on disk": {make: single("a.yaml", manifest), disk: true},
		"a good one for CMD": {make: func(p *pack) { withScript(p) }, env: cmd},

		"1 GB as a manifest":         {make: func(p *pack) { p.commit(p.tree(entry{file, "a.yaml", p.addSame(' ', gigabyte)})) }, want: "LIMITS=file=2Gi"},
		"1 GB as a manifest on disk": {make: func(p *pack) { p.commit(p.tree(entry{file, "a.yaml", p.addSame(' ', gigabyte)})) }, disk: true, want: "LIMITS=file=2Gi"},
		"1 GB as another file": {make: func(p *pack) {
			p.commit(p.tree(entry{file, "a.yaml", p.small()}, entry{file, "large", p.addSame(' ', gigabyte)}))
		}},
		"1 GB for CMD":              {make: func(p *pack) { withScript(p, entry{file, "large", p.addSame(' ', gigabyte)}) }, env: cmd},
		"1 GB for CMD on disk":      {make: func(p *pack) { withScript(p, entry{file, "large", p.addSame(' ', gigabyte)}) }, env: cmd, disk: true},
		"1 GB for CMD, and no room": {make: func(p *pack) { withScript(p, entry{file, "large", p.addSame(' ', gigabyte)}) }, env: append(cmd, "LIMITS=checkout=64Mi"), want: "LIMITS=checkout=128Mi"},
		"1 GB as .kubesyncignore": {make: func(p *pack) {
			p.commit(p.tree(entry{file, ".kubesyncignore", p.addSame(' ', gigabyte)}, entry{file, "a.yaml", p.small()}))
		}, want: "LIMITS=file="},
		"1 GB as a symlink":       {make: func(p *pack) { p.commit(p.tree(entry{link, "a.yaml", p.addSame(' ', gigabyte)})) }, want: "the target of a symlink has"},
		"1 GB as a kustomization": {make: func(p *pack) { p.commit(p.tree(entry{file, "kustomization.yaml", p.addSame(' ', gigabyte)})) }, want: "LIMITS=file="},
		"large noise": {make: func(p *pack) {
			p.commit(p.tree(entry{file, "a.yaml", p.small()}, entry{file, "large", p.noise(90 << 20)}))
		}},
		"large noise for CMD": {make: func(p *pack) { withScript(p, entry{file, "large", p.noise(90 << 20)}) }, env: cmd},
		"too much noise": {make: func(p *pack) {
			p.commit(p.tree(entry{file, "a.yaml", p.small()}, entry{file, "large", p.noise(100 << 20)}))
		}, want: "LIMITS=pack=128Mi"},

		"1,000,000 entries":              {make: func(p *pack) { p.commit(p.flat(1_000_000)) }, want: `the limit "delta"`},
		"1,000,000 entries on disk":      {make: func(p *pack) { p.commit(p.flat(1_000_000)) }, disk: true, want: `the limit "tree"`},
		"100,000 entries":                {make: func(p *pack) { p.commit(p.flat(100_000)) }, want: "declared twice"},
		"1,000,000 files in directories": {make: func(p *pack) { p.commit(levels(p, entry{file, "a.yaml", p.small()}, 1000, 2)) }, env: []string{"RECURSIVE=1"}, want: "LIMITS=entries=131072"},
		"1,000,000 files for CMD":        {make: func(p *pack) { withScript(p, entry{dir, "many", levels(p, entry{file, "x", p.small()}, 1000, 2)}) }, env: append(cmd, "LIMITS=checkout=40Mi"), want: "LIMITS=checkout=64Mi"},
		"1,000,000 objects": {make: func(p *pack) {
			for i := range 1_000_000 {
				p.add(blob, fmt.Appendf(nil, "%d", i))
			}
			p.commit(p.tree(entry{file, "a.yaml", p.small()}))
		}, want: "LIMITS=objects="},
		"10^9 paths":                                {make: func(p *pack) { p.commit(levels(p, entry{file, "a.yaml", p.small()}, 10, 9)) }, env: []string{"RECURSIVE=1"}, want: "LIMITS=entries="},
		"10^9 paths on disk":                        {make: func(p *pack) { p.commit(levels(p, entry{file, "a.yaml", p.small()}, 10, 9)) }, env: []string{"RECURSIVE=1"}, disk: true, want: "LIMITS=entries="},
		"10^9 paths for CMD":                        {make: func(p *pack) { withScript(p, entry{dir, "many", levels(p, entry{file, "x", p.small()}, 10, 9)}) }, env: append(cmd, "LIMITS=checkout=40Mi"), want: "LIMITS=checkout="},
		"100,000 directories in each other":         {make: func(p *pack) { p.commit(levels(p, entry{file, "a.yaml", p.small()}, 1, 100_000)) }, env: []string{"RECURSIVE=1"}, want: `the limit "depth"`},
		"100,000 directories in each other on disk": {make: func(p *pack) { p.commit(levels(p, entry{file, "a.yaml", p.small()}, 1, 100_000)) }, env: []string{"RECURSIVE=1"}, disk: true, want: `the limit "depth"`},
		"100,000 directories in each other for CMD": {make: func(p *pack) { withScript(p, entry{dir, "deep", levels(p, entry{file, "x", p.small()}, 1, 100_000)}) }, env: cmd, want: `the limit "depth"`},

		"a delta bomb": {make: func(p *pack) {
			const size = 30 << 20
			base := p.offset
			p.addSame('a', size)
			for i := range 1000 {
				instructions := binary.AppendUvarint(binary.AppendUvarint(nil, size), size)
				instructions = append(instructions, 4, byte(i>>24), byte(i>>16), byte(i>>8), byte(i))
				for at := 4; at < size; {
					n := min(0xffffff, size-at)
					instructions = append(instructions, 0xff, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(n), byte(n>>8), byte(n>>16))
					at += n
				}
				p.over(base, instructions)
			}
			p.commit(p.tree(entry{file, "a.yaml", p.small()}))
		}, want: `the limit "inflated"`},

		"10^9 by aliases":           {make: single("a.yaml", laughs(9)), want: `the limit "expansion"`},
		"10,000 levels of [":        {make: single("a.yaml", nested("[", "", "]", 10_000)), want: "a.yaml"},
		"9,000 levels of [":         {make: single("a.yaml", nested("[", "", "]", 9_000)), want: `the limit "nesting"`},
		"10,000 levels of {":        {make: single("a.yaml", nested("{a: ", "", "}", 10_000)), want: "a.yaml"},
		"10,000 levels of -":        {make: single("a.yaml", nested("- ", "x", "", 10_000)), want: "a.yaml"},
		"5,000 mappings, indented":  {make: single("a.yaml", blocks("a:", 5_000)), want: `the limit "nesting"`},
		"10,000 levels of JSON":     {make: single("a.json", `{"apiVersion": "v1", "kind": "ConfigMap", "data": `+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+"}"), want: "a.json"},
		"9,000 levels of JSON":      {make: single("a.json", `{"apiVersion": "v1", "kind": "ConfigMap", "data": `+strings.Repeat(`{"a":`, 9_000)+"1"+strings.Repeat("}", 9_000)+"}"), want: `the limit "nesting"`},
		"a document of 100 MB":      {make: single("a.yaml", manifest+"data: {a: "+strings.Repeat("x", 100<<20)+"}\n"), want: "LIMITS=file=128Mi"},
		"a document of 15 MB":       {make: single("a.yaml", manifest+"data: {a: "+strings.Repeat("x", 15<<20)+"}\n")},
		"a document of 15 MB, JSON": {make: single("a.json", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"a": "`+strings.Repeat(`\u0001`, 15<<20/6)+`"}}`)},
		"1,000,000 lines of ---":    {make: single("a.yaml", strings.Repeat("---\n", 1_000_000)+manifest)},
		"1,000,000 documents":       {make: single("a.yaml", strings.Repeat("a: 1\n---\n", 1_000_000)), want: `the limit "documents"`},
		"documents in many files": {make: func(p *pack) {
			content := p.add(blob, []byte(strings.Repeat("a: 1\n---\n", 40_000)))
			p.commit(p.tree(entry{file, "a.yaml", content}, entry{file, "b.yaml", content}))
		}, want: `the limit "documents"`},
		"40,000 mistakes":            {make: single("a.yaml", strings.Repeat("kind: 1\n---\n", 40_000)), want: "more problems"},
		"1,000,000 mistakes":         {make: single("a.yaml", strings.Repeat("kind: 1\n---\n", 1_000_000)), want: `the limit "documents"`},
		"1,000,000 items":            {make: single("a.yaml", "apiVersion: v1\nkind: List\nitems: ["+strings.Repeat("{},", 1_000_000)+"]\n"), want: `the limit "values"`},
		"60,000 items":               {make: single("a.yaml", "apiVersion: v1\nkind: List\nitems:\n"+strings.Repeat("- {}\n", 60_000)), want: `the limit "documents"`},
		"8,000,000 numbers":          {make: single("a.yaml", manifest+"data: ["+strings.Repeat("0,", 8_000_000-100)+"]\n"), want: `the limit "values"`},
		"8,000,000 numbers, JSON":    {make: single("a.json", `{"apiVersion": "v1", "kind": "X", "data": [`+strings.Repeat("0,", 8_000_000-100)+"0]}"), want: `the limit "values"`},
		"as many keys as allowed":    {make: single("a.yaml", manifest+"data:\n"+many(" k%d: v\n", 98_000))},
		"as many aliases as allowed": {make: single("a.yaml", custom+"data:\n x: &a b\n y:\n"+strings.Repeat("  - *a\n", 98_000)), want: ""},
		"2,000,000 values of JSON":   {make: single("a.json", strings.Repeat("{}", 2_000_000)), want: `the limit "values"`},
		"100,000 values of JSON":     {make: single("a.json", strings.Repeat("{}", 100_000)), want: `the limit "documents"`},
		"40 MB of manifests": {make: func(p *pack) {
			var entries []entry
			for i := range 4 {
				entries = append(entries, entry{file, fmt.Sprintf("%d.yaml", i), p.add(blob, []byte(strings.Replace(manifest, "name: a", fmt.Sprintf("name: a%d", i), 1)+"data: {a: "+strings.Repeat("x", 10<<20)+"}\n"))})
			}
			p.commit(p.tree(entries...))
		}, want: "LIMITS=manifests=32Mi"},
		"22 MB of manifests": {make: func(p *pack) {
			var entries []entry
			for i := range 11 {
				entries = append(entries, entry{file, fmt.Sprintf("%02d.yaml", i), p.add(blob, []byte(many("---\n"+strings.Replace(manifest, "name: a", fmt.Sprintf("name: a%d-%%d", i), 1)+"data: {a: "+strings.Repeat("x", 900)+"}\n", 2000)))})
			}
			p.commit(p.tree(entries...))
		}},
		"40,000 objects": {make: single("a.yaml", many("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d, namespace: default}\n", 40_000))},

		"a kustomization of itself": {make: kustomization("resources: [.]\n"), want: "kustomization.yaml"},
		"two kustomizations of each other": {make: func(p *pack) {
			a, b := p.add(blob, []byte("resources: [../b]\n")), p.add(blob, []byte("resources: [../a]\n"))
			p.commit(p.tree(entry{dir, "a", p.tree(entry{file, "kustomization.yaml", a})}, entry{dir, "b", p.tree(entry{file, "kustomization.yaml", b})}, entry{file, "kustomization.yaml", p.add(blob, []byte("resources: [a]\n"))}))
		}, want: "kustomization.yaml"},
		"a kustomization of aliases":           {make: kustomization("x: &x [a,a,a,a,a,a,a,a,a,a]\n" + strings.ReplaceAll(strings.TrimPrefix(laughs(9), manifest+"data:\n"), "  x", "x")), want: "kustomization.yaml"},
		"a kustomization of 15 MB":             {make: kustomization("resources: [a.yaml]\ncommonAnnotations: {a: "+strings.Repeat("x", 15<<20)+"}\n", "a.yaml", manifest)},
		"a kustomization of aliased manifests": {make: kustomization("resources: [a.yaml]\n", "a.yaml", laughs(9)), env: lean, want: "LIMITS=kustomize-memory="},
		"a generator of 15 MB, 20 times":       {make: kustomization("configMapGenerator:\n"+many("- {name: c%d, files: [large]}\n", 20), "large", strings.Repeat("x\n", 15<<19)), env: lean, want: "LIMITS="},
		"a generator of 1 GB": {make: func(p *pack) {
			p.commit(p.tree(entry{file, "kustomization.yaml", p.add(blob, []byte("configMapGenerator:\n- {name: c, files: [large]}\n"))}, entry{file, "large", p.addSame(' ', gigabyte)}))
		}, want: "LIMITS=file="},
	}
}

// noise adds a file that cannot be compressed.
func (p *pack) noise(size int) id {
	content, state := make([]byte, size), uint64(1)
	for i := 0; i+8 <= size; i += 8 {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		binary.LittleEndian.PutUint64(content[i:], state)
	}
	return p.add(blob, content)
}

// flat is a directory with so many manifests.
func (p *pack) flat(count int) id {
	var content bytes.Buffer
	same := p.small()
	for i := range count {
		fmt.Fprintf(&content, "%s %07d.yaml\x00", file, i)
		content.Write(same[:])
	}
	return p.add(tree, content.Bytes())
}

// lastLine is what a log says of a failure, which stands before its last line.
func lastLine(log string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"error"`) {
			return line
		}
	}
	return log
}

func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for name, bomb := range bombs() {
		t.Run(name, func(t *testing.T) {
			p := newPack(t, 0)
			bomb.make(p)
			p.end()
			url := ""
			if bomb.disk {
				url = p.onDisk()
			} else {
				url = p.serve()
			}
			said, planned, memory := plan(t, url, bomb.env)
			said = strings.ReplaceAll(said, `\"`, `"`) // the log is JSON
			t.Logf("%d MB: %.400s", memory*1024/1_000_000, lastLine(said))
			if memory > mostMemory {
				t.Errorf("it took %d kB of memory, and may take %d", memory, mostMemory)
			}
			switch {
			case bomb.want == "" && !planned:
				t.Errorf("it was not planned: %.2000s", said)
			case bomb.want != "" && (planned || !strings.Contains(said, bomb.want)):
				t.Errorf("it does not say %q (planned: %v): %.2000s", bomb.want, planned, said)
			}
			if len(said) > 200_000 {
				t.Errorf("it says %d bytes", len(said))
			}
		})
	}
}

// launcher is the argument with which this program starts the one that is tested. A
// process counts what its parent had when it was started among its own peak, and this
// one is large when it has made a bomb.
const launcher = "launch"

// launch runs the program, and prints its peak memory in kB and its exit status.
func launch() int {
	cmd := exec.Command(os.Args[2])
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, cmd.ProcessState.ExitCode())
	return 0
}

// plan has the program plan a repository. It returns what it wrote to its log, whether
// it succeeded, and the memory at its peak, or its helpers', in kB.
func plan(t *testing.T, url string, env []string) (log string, planned bool, memory int64) {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], launcher, program)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "REPO=" + url, "DRYRUN=1", "ONCE=1", "LOG_FORMAT=json"}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	status := 0
	if _, scanErr := fmt.Sscan(stdout.String(), &memory, &status); err != nil || scanErr != nil || status > 1 {
		t.Fatalf("status %d, %v: %.2000s", status, err, stderr.String())
	}
	return stderr.String(), status == 0, memory
}

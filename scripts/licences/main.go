// Licences lists the modules that are compiled into what is shipped, with their
// licences, and refuses a licence that Apache-2.0 software may not be built with.
//
//	go -C scripts/licences run .          writes LICENCES.md
//	go -C scripts/licences run . -check   fails if it is not up to date
//
// A licence is what the file in the module says, as pkg.go.dev recognises it, not what
// a registry claims. A module whose files are not recognised is an error: a user has
// to look.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// list is the file that is written.
const list = "LICENCES.md"

// shipped are the modules that what is shipped is built in, seen from this one, and the
// packages that are built there.
var shipped = []struct{ what, dir, packages string }{
	{"kubesync", "../..", "."},
	{"kubectl and yq, in the default image", "../image-tools", "tool"},
}

// compatible are the licences that may be linked into Apache-2.0 software: permissive
// ones, and MPL-2.0, whose files stay under it.
var compatible = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "0BSD", "Unlicense", "CC0-1.0", "Unicode-DFS-2016"}

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("licences", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "only report whether the list is up to date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := document()
	if err != nil {
		return err
	}
	if !*check {
		return os.WriteFile(list, text, 0o644)
	}
	old, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	if !bytes.Equal(old, text) {
		return errors.New("scripts/licences/" + list + " is not up to date: make update")
	}
	return nil
}

// document returns the list of all that is shipped.
func document() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Licences of what is shipped\n\nkubesync itself is under Apache-2.0. Compiled into the programs are these modules, each under the licence that its own\nfiles state. The list is generated (`make update`); CI fails if it is out of date, if a licence is not recognised, or\nif one is not among " +
		strings.Join(compatible, ", ") + ". Debian's packages in the default image keep theirs in /usr/share/doc.\n")
	var wrong []error
	for _, one := range shipped {
		modules, err := modules(one.dir, one.packages)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.what, err)
		}
		fmt.Fprintf(&out, "\n## %s: %d modules\n\n| module | version | licence |\n|---|---|---|\n", one.what, len(modules))
		for _, m := range modules {
			found, err := m.licences()
			if err != nil {
				wrong = append(wrong, err)
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(found, ", "))
		}
	}
	return out.Bytes(), errors.Join(wrong...)
}

// module is one that a program is built from.
type module struct{ Path, Version, Dir string }

// modules returns those of the packages that are compiled for Linux, the module in dir
// itself left out, by path.
func modules(dir, packages string) ([]module, error) {
	command := exec.Command("go", "list", "-deps", "-json=Module", packages)
	command.Dir, command.Stderr = dir, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	seen := map[string]module{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one struct {
			Module *struct {
				module
				Main    bool
				Replace *module
			}
		}
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if one.Module == nil || one.Module.Main {
			continue // Go's own, under BSD-3-Clause
		}
		seen[one.Module.Path] = one.Module.module
	}
	var all []module
	for _, m := range seen {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// chosen are the licences that we take from modules that offer a choice: psx says
// "BSD-3-Clause OR GPL-2.0-only", with a wording of the former that is not recognised.
var chosen = map[string]string{"kernel.org/pub/linux/libs/security/libcap/psx": "BSD-3-Clause"}

// named matches the files that state a module's licence.
var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-.].*)?$`)

// covered is how much of a licence file has to be the text of known licences, in per
// cent: what pkg.go.dev asks for.
const covered = 75

// licences returns what a module's files state, by name. It is an error if that is
// nothing that is known, or something that is not compatible.
func (m module) licences() ([]string, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() || !named.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		scan := licensecheck.Scan(text)
		if scan.Percent < covered {
			return nil, fmt.Errorf("%s %s: %s is not the text of a known licence (%.0f %%): look at it", m.Path, m.Version, entry.Name(), scan.Percent)
		}
		for _, match := range scan.Match {
			if !slices.Contains(found, match.ID) {
				found = append(found, match.ID)
			}
		}
	}
	slices.Sort(found)
	if choice := chosen[m.Path]; choice != "" {
		found = []string{choice}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s %s states no licence", m.Path, m.Version)
	}
	for _, id := range found {
		if !slices.Contains(compatible, id) {
			return found, fmt.Errorf("%s %s is under %s, which is not among the licences that kubesync may be built with", m.Path, m.Version, strings.Join(found, ", "))
		}
	}
	return found, nil
}

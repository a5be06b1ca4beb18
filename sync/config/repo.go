package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
)

// Repo is one repo to sync, with every setting that may differ between repos.
type Repo struct {
	// Name identifies the repo: its parent and, by default, its Lease are called
	// after it. It is unique, and a valid part of an object's name.
	Name        string
	URL         repo.URL
	Version     repo.Version
	Interval    time.Duration
	Credentials Credentials // of REPOCREDS, or the entry's own

	Command         string // empty: none
	YMLDir          string // clean, inside the repo; empty: not set
	Recursive       bool
	ConventionalDir bool // kubernetes/ is looked for

	Tier       manifest.Tier
	Namespace  string   // for objects that name none; empty: not set
	Namespaces []string // the only ones the repo writes to, besides Config.Namespaces; nil for all
	Prune      bool
	Suspend    bool // nothing is written
	FromList   bool // it stands in CONFIG, not in REPO
}

// Equal reports whether two entries say the same, so that what runs for the one need
// not be started anew for the other.
func (r Repo) Equal(other Repo) bool { return reflect.DeepEqual(r, other) }

// longestName leaves room for the prefix of the parent's name.
const longestName = validation.DNS1123SubdomainMaxLength - len("kubesync-")

// parseRepoName checks a name that a user chose for a repo.
func parseRepoName(name string) (string, error) {
	if _, err := parseObjectName(name); err != nil {
		return "", err
	}
	if len(name) > longestName {
		return "", fmt.Errorf("%q is longer than %d characters", name, longestName)
	}
	return name, nil
}

// nameOf returns a repo's name after the last element of its URL.
func nameOf(url repo.URL) string { return validName(url.Name()) }

// validName makes a repo's name of any text. What no object may have in its name becomes
// a dash: a repo called My_App is known as my-app. It is empty if nothing is left.
func validName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	var labels []string
	for label := range strings.SplitSeq(name, ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	name = strings.Join(labels, ".")
	return strings.TrimRight(name[:min(len(name), longestName)], "-.")
}

// check finds what is wrong with settings that are right one by one.
func (r Repo) check() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("the URL %s holds nothing that can be the repo's name: set NAME, or list it in CONFIG with a name", r.URL)
	case r.Version.IsWorktree() && !r.URL.IsFile():
		return fmt.Errorf("version mode \"worktree\" needs a file:// URL, and %s is none", r.URL)
	}
	return nil
}

// insideRepo returns a directory without slashes in front, and whether it had any. The
// shell script put it behind the path of its clone, where one slash more does no harm.
func insideRepo(directory string) (relative string, rooted bool) {
	relative = strings.TrimLeft(directory, "/")
	if rooted = relative != directory; rooted && relative == "" {
		relative = "."
	}
	return relative, rooted
}

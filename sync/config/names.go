package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubesync/kubesync/repo"
)

// finish names the entries and takes them into the list.
func (l *listReader) finish() {
	l.nameEntries()
	for _, entry := range l.entries {
		entry.finish()
	}
}

// nameEntries gives a name to each entry that has none: the last element of its URL.
// Where several entries without a name have the same URL, or REPO has it, each is named
// after its URL and its ymldir.
//
// The name decides which objects belong to a repo, so it must not change by accident. It
// depends on neither the order of the list nor entries for other URLs. It does change
// when an entry becomes the second one for its URL, or the only one again: then the
// objects are taken over under the new name, none is deleted, and a warning before that
// advises to set names. To name every entry after its ymldir would avoid that, but then
// each change of a ymldir would make a new repo out of the old one, and no prune guard
// could compare the two directories.
func (l *listReader) nameEntries() {
	unnamed := map[string][]*entryReader{}
	var urls []string
	for _, entry := range l.entries {
		if entry.to.Name == "" {
			key := sameRepo(entry.to.URL)
			if unnamed[key] == nil {
				urls = append(urls, key)
			}
			unnamed[key] = append(unnamed[key], entry)
		}
	}
	inREPO := map[string]bool{}
	for _, url := range l.list.taken {
		inREPO[sameRepo(url)] = true
	}
	for _, url := range urls {
		several := len(unnamed[url]) > 1 || inREPO[url]
		var names []string
		for _, entry := range unnamed[url] {
			entry.to.Name = nameOf(entry.to.URL)
			if several {
				entry.to.Name = nameWithDirectory(entry.to.URL, entry.to.YMLDir)
			}
			names = append(names, strconv.Quote(entry.to.Name))
		}
		if several && len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names) {
			l.warnings = append(l.warnings, fmt.Sprintf("CONFIG: entries without a name have the same url, %s, and are named %s after url and ymldir: "+
				`give each a "name", which stays when such an entry is added or removed`, unnamed[url][0].to.URL, strings.Join(names, ", ")))
		}
	}
}

// sameRepo returns what URLs of one repo have in common.
func sameRepo(url repo.URL) string { return strings.TrimSuffix(url.String(), ".git") }

// nameWithDirectory returns a repo's name after the last element of its URL and the
// directory in it, such as site-overlays-prod; for the root it is that element alone.
func nameWithDirectory(url repo.URL, directory string) string {
	name := url.Name()
	if directory != "" && directory != "." {
		name += "-" + directory
	}
	return validName(name)
}

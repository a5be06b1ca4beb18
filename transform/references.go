package transform

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
)

// foreign lists what the kustomization in dir uses that is not in the tree: what is
// remote or outside, and charts, which are rendered by a program. The process that
// builds it could not get at them either; this is for messages that say which line
// is wrong. What cannot be parsed is left to kustomize, which says what is wrong with it.
func foreign(dir string, text []byte) []string {
	var k types.Kustomization
	if err := k.Unmarshal(text); err != nil {
		return nil
	}
	var problems []string
	for _, use := range references(k) {
		switch {
		case isDocument(use.to):
		case isRemote(use.to):
			problems = append(problems, fmt.Sprintf("%s: %s is remote", use.field, withoutUserinfo(use.to)))
		case path.IsAbs(use.to), below(path.Join(dir, use.to), ".."):
			problems = append(problems, fmt.Sprintf("%s: %s is outside", use.field, use.to))
		}
	}
	if len(k.HelmCharts)+len(k.HelmChartInflationGenerator) > 0 || k.HelmGlobals != nil {
		problems = append(problems, "helmCharts: charts are not rendered")
	}
	return problems
}

// reference is something that a kustomization says to read.
type reference struct {
	field, to string
}

// references lists the files, directories and URLs that a kustomization refers to.
//
//nolint:staticcheck // Deprecated fields work as well as the others.
func references(k types.Kustomization) []reference {
	var all []reference
	add := func(field string, names ...string) {
		for _, name := range names {
			all = append(all, reference{field, name})
		}
	}
	add("resources", k.Resources...)
	add("bases", k.Bases...)
	add("components", k.Components...)
	add("crds", k.Crds...)
	add("configurations", k.Configurations...)
	add("generators", k.Generators...)
	add("transformers", k.Transformers...)
	add("validators", k.Validators...)
	add("openapi", k.OpenAPI["path"])
	for _, patch := range k.Patches {
		add("patches", patch.Path)
	}
	for _, patch := range k.PatchesJson6902 {
		add("patchesJson6902", patch.Path)
	}
	for _, patch := range k.PatchesStrategicMerge {
		add("patchesStrategicMerge", string(patch))
	}
	for _, replacement := range k.Replacements {
		add("replacements", replacement.Path)
	}
	for _, generator := range k.ConfigMapGenerator {
		add("configMapGenerator", sources(generator.KvPairSources)...)
	}
	for _, generator := range k.SecretGenerator {
		add("secretGenerator", sources(generator.KvPairSources)...)
	}
	return all
}

// sources lists the files that a ConfigMap or Secret is generated from.
func sources(pairs types.KvPairSources) []string {
	names := append([]string{pairs.EnvSource}, pairs.EnvSources...)
	for _, file := range pairs.FileSources {
		// key=path; a path may hold further =, a URL's query does.
		if key, name, ok := strings.Cut(file, "="); ok && !strings.Contains(key, "/") {
			file = name
		}
		names = append(names, file)
	}
	return names
}

// remote recognises, after kustomize, URLs, git@host:path and github.com/….
var remote = regexp.MustCompile(`(?i)^(git::|[a-z][a-z0-9+.-]*://|[^/\s]+@[^/\s]+[:/]|(www\.)?github\.com[:/])`)

// isRemote reports by its form whether a reference leads out of the repository.
func isRemote(name string) bool { return remote.MatchString(name) }

// isDocument reports whether a document stands where a path could: some fields take both.
func isDocument(name string) bool {
	return strings.Contains(name, "\n") || strings.HasPrefix(name, "{")
}

// userinfo is what stands before the host of a URL: a password, or a token in place of
// the user.
var userinfo = regexp.MustCompile(`://[^/]*@`)

// withoutUserinfo returns a URL in a form that can be shown.
func withoutUserinfo(name string) string { return userinfo.ReplaceAllString(name, "://") }

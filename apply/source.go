package apply

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/kubesync/kubesync/apply/prune"
)

// rendering is what decides over the set's manifests besides the revision, the URL, the
// source and the directory, which the parent records by themselves.
func (s *Set) rendering(revision Provenance) prune.Rendering {
	all := prune.Rendering{
		"the tier":                             s.options.Tier.String(),
		"the namespace of objects without one": s.options.Namespace,
		"the builder of the manifests":         revision.Built,
	}
	maps.Copy(all, s.options.Rendering)
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// recordedRendering reads what a parent records of that; nil if it records nothing.
func recordedRendering(p parent) prune.Rendering {
	var recorded prune.Rendering
	if err := json.Unmarshal([]byte(p.data(dataRendering)), &recorded); err != nil {
		return nil // nothing was recorded, or a user edited it
	}
	return recorded
}

// sourceData is what a parent records of where the manifests come from.
func (s *Set) sourceData(revision Provenance) map[string]string {
	text, err := json.Marshal(s.rendering(revision))
	if err != nil {
		panic(fmt.Sprintf("a map of strings cannot be encoded: %v", err))
	}
	return map[string]string{dataURL: revision.URL, dataSource: revision.Source, dataDirectory: revision.Dir, dataRendering: string(text)}
}

// sourceChanges says in what the manifests' source differs from what the parent
// remembers: such a change can make every object leave git by mistake.
func (s *Set) sourceChanges(p Plan) []string {
	if p.parent.data(dataURL) == "" {
		return nil
	}
	var changes []string
	compare := func(what, key, now string) bool {
		before := p.parent.data(key)
		if before != now {
			changes = append(changes, fmt.Sprintf("%s changed from %q to %q", what, before, now))
		}
		return before == now
	}
	compare("the repo's URL", dataURL, p.Revision.URL)
	if compare("the source of the manifests", dataSource, p.Revision.Source) {
		compare("the directory", dataDirectory, p.Revision.Dir) // another source has another one
	}
	return append(changes, s.rendering(p.Revision).Changes(recordedRendering(p.parent))...)
}

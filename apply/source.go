package apply

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/kubesync/kubesync/apply/parent"
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
func recordedRendering(p parent.Parent) prune.Rendering {
	var recorded prune.Rendering
	if err := json.Unmarshal([]byte(p.Data(parent.DataRendering)), &recorded); err != nil {
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
	return map[string]string{parent.DataURL: revision.URL, parent.DataSource: revision.Source, parent.DataDirectory: revision.Dir, parent.DataRendering: string(text)}
}

// sourceChanges says in what the manifests' source differs from what the parent
// remembers: such a change can make every object leave git by mistake.
func (p *Plan) sourceChanges() []string {
	if p.parent.Data(parent.DataURL) == "" {
		return nil
	}
	var changes []string
	compare := func(what, key, now string) bool {
		before := p.parent.Data(key)
		if before != now {
			changes = append(changes, fmt.Sprintf("%s changed from %q to %q", what, before, now))
		}
		return before == now
	}
	compare("the repo's URL", parent.DataURL, p.Revision.URL)
	if compare("the source of the manifests", parent.DataSource, p.Revision.Source) {
		compare("the directory", parent.DataDirectory, p.Revision.Dir) // another source has another one
	}
	return append(changes, p.set.rendering(p.Revision).Changes(recordedRendering(p.parent))...)
}

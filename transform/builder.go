package transform

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/kubesync/kubesync/transform/confine"
)

// kustomizeHelper is the name of the helper process that builds a kustomization.
const kustomizeHelper = "kustomize"

// Helpers are this package's helper processes, for [confine.Main].
func Helpers() map[string]confine.Helper {
	return map[string]confine.Helper{kustomizeHelper: helpKustomize}
}

// helpKustomize is the process that builds a kustomization.
func helpKustomize(in, out *os.File) int {
	asker := &asker{encoder: gob.NewEncoder(out), decoder: gob.NewDecoder(in)}
	var todo order
	if err := asker.decoder.Decode(&todo); err != nil {
		return 1
	}
	// The library prints to stdout too.
	os.Stdout = os.Stderr
	if err := confine.LimitMemory(todo.Most.Memory); err != nil {
		return 1
	}
	builder := &builder{
		files: &askedFiles{ask: asker.ask, what: todo.What, root: path.Join(virtualRoot, todo.Dir, todo.File)},
	}
	documents, err := builder.isolatedBuild(path.Join(virtualRoot, todo.Dir))
	result := built{Documents: documents}
	if err != nil {
		result.Failure = err.Error()
	}
	if size := result.size(); size > todo.Most.Manifests {
		result = built{TooMuch: size}
	}
	if err := asker.encoder.Encode(question{Do: doFinish, Result: &result}); err != nil {
		return 1
	}
	return 0
}

// asker asks the daemon.
type asker struct {
	encoder *gob.Encoder
	decoder *gob.Decoder
}

func (a *asker) ask(do action, name string) (answer, error) {
	var reply answer
	if err := a.encoder.Encode(question{Do: do, Path: name}); err != nil {
		return reply, err
	}
	return reply, a.decoder.Decode(&reply)
}

// builder builds one kustomization.
type builder struct {
	files *askedFiles
}

// isolatedBuild builds after it has taken everything from this process that the
// kustomize library could reach outside the tree with: its loader gets what looks like
// a URL over HTTP, and else with git, and cannot be kept from it.
func (b *builder) isolatedBuild(dir string) ([]document, error) {
	http.DefaultTransport = noNetwork{refuse: b.files.refuse}
	os.Clearenv() // no PATH, so no git
	if err := confine.Isolate(); err != nil {
		return nil, fmt.Errorf("confine the process that builds it: %w", err)
	}
	return b.build(dir)
}

// noNetwork is an HTTP client's transport that goes nowhere.
type noNetwork struct {
	refuse func(format string, args ...any) error
}

// RoundTrip implements http.RoundTripper.
func (n noNetwork) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, n.refuse("%s is remote", request.URL.Redacted())
}

// build builds the kustomization in dir. What was refused on the way is the error, also
// if kustomize thinks that it managed without, or made something else of it.
func (b *builder) build(dir string) (documents []document, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			documents, err = nil, fmt.Errorf("kustomize panicked: %v", fault)
		}
	}()
	result, err := krusty.MakeKustomizer(&krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The tree is the boundary: a file of the repository beside the kustomization
		// is as good as one below it.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(b.files, dir)
	if len(b.files.refused) > 0 {
		return nil, errors.New(strings.Join(b.files.refused, "; "))
	}
	if err != nil {
		return nil, errors.New(strings.TrimSpace(strings.ReplaceAll(err.Error(), virtualRoot+"/", "")))
	}
	return b.documents(result, dir)
}

// documents takes the result apart.
func (b *builder) documents(result resmap.ResMap, dir string) ([]document, error) {
	documents := make([]document, 0, result.Size())
	for _, object := range result.Resources() {
		where := b.files.root
		origin, err := object.GetOrigin()
		if err != nil {
			return nil, fmt.Errorf("read the origin of %s: %w", object.CurId(), err)
		}
		if origin != nil && origin.Path != "" {
			where = path.Join(dir, origin.Path)
		} else if origin != nil && origin.ConfiguredIn != "" {
			where = path.Join(dir, origin.ConfiguredIn)
		}
		if !below(where, virtualRoot) || where == virtualRoot {
			where = b.files.root
		}
		if !b.files.keepOrigins {
			if err := object.SetOrigin(nil); err != nil {
				return nil, fmt.Errorf("remove the origin of %s: %w", object.CurId(), err)
			}
		}
		text, err := object.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", object.CurId(), err)
		}
		documents = append(documents, document{Path: strings.TrimPrefix(where, virtualRoot+"/"), YAML: text})
	}
	return documents, nil
}

// withOrigins asks, in a kustomization's text, for the annotations that say which
// file an object comes from. It reports whether the text did so itself, and returns
// it as it is if it cannot be parsed: kustomize has the better error messages.
func withOrigins(text []byte) (changed []byte, asked bool) {
	node, err := yaml.Parse(string(text))
	if err != nil {
		return text, false
	}
	options, err := node.Pipe(yaml.LookupCreate(yaml.SequenceNode, "buildMetadata"))
	if err != nil {
		return text, false
	}
	present, err := options.Elements()
	if err != nil {
		return text, false
	}
	if slices.ContainsFunc(present, func(option *yaml.RNode) bool { return yaml.GetValue(option) == types.OriginAnnotations }) {
		return text, true
	}
	if err := options.PipeE(yaml.Append(yaml.NewStringRNode(types.OriginAnnotations).YNode())); err != nil {
		return text, false
	}
	written, err := node.String()
	if err != nil {
		return text, false
	}
	return bytes.TrimLeft([]byte(written), "\n"), false
}

var _ filesys.FileSystem = (*askedFiles)(nil)

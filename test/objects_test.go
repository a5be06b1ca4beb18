package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
)

// objects looks at the objects of a cluster as its administrator. Conditions ask
// often, and a kubectl each time would keep a processor busy.
type objects struct {
	client   dynamic.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	expanded meta.RESTMapper // knows short names: cm, deploy
}

func newObjects(config *rest.Config) (*objects, error) {
	config.Timeout = 10 * time.Second
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	cached := memory.NewMemCacheClient(found)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return &objects{client: client, mapper: mapper, expanded: restmapper.NewShortcutExpander(mapper, cached, nil)}, nil
}

// resource returns the client for a kind in a namespace; kind is written as for
// kubectl. A kind that the cluster does not serve is errNoKind.
func (o *objects) resource(kind, namespace string) (dynamic.ResourceInterface, error) {
	resource, err := o.lookup(kind)
	if meta.IsNoMatchError(err) {
		o.mapper.Reset() // its CRD may be new
		resource, err = o.lookup(kind)
	}
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%w %s", errNoKind, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", kind, err)
	}
	known, err := o.mapper.KindFor(resource)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", kind, err)
	}
	mapping, err := o.mapper.RESTMapping(known.GroupKind(), known.Version)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return o.client.Resource(resource).Namespace(namespace), nil
	}
	return o.client.Resource(resource), nil
}

var errNoKind = errors.New("the cluster serves no kind")

// lookup finds a kind by the resource's name (configmaps, cm), or by its own.
func (o *objects) lookup(kind string) (schema.GroupVersionResource, error) {
	want := schema.ParseGroupResource(strings.ToLower(kind))
	return o.expanded.ResourceFor(want.WithVersion(""))
}

// get returns the object KIND/NAME, nil if it does not exist.
func (o *objects) get(ctx context.Context, namespace, ref string) (*unstructured.Unstructured, error) {
	kind, name, found := strings.Cut(ref, "/")
	if !found {
		return nil, fmt.Errorf("want KIND/NAME: %q", ref)
	}
	object, err := ask(o, kind, namespace, func(resource dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return resource.Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// list returns all objects of a kind, none if the kind does not exist. An empty
// namespace is all.
func (o *objects) list(ctx context.Context, namespace, kind, selector string) ([]unstructured.Unstructured, error) {
	list, err := ask(o, kind, namespace, func(resource dynamic.ResourceInterface) (*unstructured.UnstructuredList, error) {
		return resource.List(ctx, metav1.ListOptions{LabelSelector: selector})
	})
	if err != nil || list == nil {
		return nil, err
	}
	return list.Items, nil
}

// ask asks for objects of a kind; nothing if the kind does not exist.
func ask[T any](o *objects, kind, namespace string, do func(dynamic.ResourceInterface) (*T, error)) (*T, error) {
	for again := false; ; again = true {
		resource, err := o.resource(kind, namespace)
		if errors.Is(err, errNoKind) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		answer, err := do(resource)
		switch {
		case err == nil:
			return answer, nil
		case !notServed(err):
			return nil, err
		case again:
			return nil, nil // it is gone, and discovery does not know that yet
		}
		o.mapper.Reset() // it may be served in another version by now
	}
}

// notServed reports whether it is the resource that was not found, not an object.
func notServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// field returns the value at a JSONPath, as kubectl prints it.
func field(object *unstructured.Unstructured, path string) (string, error) {
	if !strings.Contains(path, "{") {
		path = "{" + path + "}"
	}
	parsed := jsonpath.New("field").AllowMissingKeys(true)
	if err := parsed.Parse(path); err != nil {
		return "", fmt.Errorf("path %s: %w", path, err)
	}
	var value bytes.Buffer
	if err := parsed.Execute(&value, object.Object); err != nil {
		return "", fmt.Errorf("path %s: %w", path, err)
	}
	return value.String(), nil
}

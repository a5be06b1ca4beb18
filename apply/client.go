package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// listPage is how many objects one list request returns. Pages bound the memory
// that a large cluster costs here and on the API server.
const listPage = 500

// client talks to one API server under one identity.
type client struct {
	objects  rest.Interface
	metadata metadata.Interface
}

// newClient builds the client for the identity that config carries.
func newClient(config *rest.Config, transport *http.Client) (*client, error) {
	raw := dynamic.ConfigFor(config)
	raw.GroupVersion = &schema.GroupVersion{}
	raw.APIPath = "/unused" // every request below names its whole path
	objects, err := rest.RESTClientForConfigAndClient(raw, transport)
	if err != nil {
		return nil, fmt.Errorf("build the client for the API server: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), transport)
	if err != nil {
		return nil, fmt.Errorf("build the metadata client for the API server: %w", err)
	}
	return &client{objects: objects, metadata: meta}, nil
}

// written is the API server's answer to a write.
type written struct {
	Live     *unstructured.Unstructured
	Created  bool
	Warnings []string
}

// apply sends one server-side apply as manager. With dryRun nothing is stored.
func (c *client) apply(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured, manager string, dryRun bool) (written, error) {
	body, err := json.Marshal(object.Object)
	if err != nil {
		return written{}, fmt.Errorf("encode the object: %w", err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: manager, Force: &force, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return c.patch(ctx, gvr, object.GetNamespace(), object.GetName(), types.ApplyPatchType, body, options)
}

// patch sends one patch of any type.
func (c *client) patch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, kind types.PatchType, body []byte, options metav1.PatchOptions) (written, error) {
	result := c.objects.Patch(kind).AbsPath(objectPath(gvr, namespace, name)...).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		Body(body).Do(ctx)
	return readWritten(result)
}

// get reads one whole object.
func (c *client) get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	answer, err := readWritten(c.objects.Get().AbsPath(objectPath(gvr, namespace, name)...).Do(ctx))
	return answer.Live, err
}

// getMetadata reads one object's metadata.
func (c *client) getMetadata(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return c.metadata.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// listMetadata calls visit with the metadata of every object that matches the
// selector, page by page, in one namespace or (namespace "") in all.
func (c *client) listMetadata(ctx context.Context, gvr schema.GroupVersionResource, namespace, selector string, visit func(*metav1.PartialObjectMetadata)) error {
	options := metav1.ListOptions{LabelSelector: selector, Limit: listPage}
	for {
		page, err := c.metadata.Resource(gvr).Namespace(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
		options.Continue = page.Continue
	}
}

// deletion is what the API server made of a delete.
type deletion struct {
	Gone bool // at once; otherwise a finalizer or a grace period is pending
}

// delete removes one object, but only the very one and the very version that was
// looked at: uid and, unless empty, resourceVersion are preconditions.
func (c *client) delete(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID, resourceVersion string) (deletion, error) {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &background,
		Preconditions:     &metav1.Preconditions{UID: &uid},
	}
	if resourceVersion != "" {
		options.Preconditions.ResourceVersion = &resourceVersion
	}
	body, err := json.Marshal(options)
	if err != nil {
		return deletion{}, fmt.Errorf("encode the delete options: %w", err)
	}
	answer, err := readWritten(c.objects.Delete().AbsPath(objectPath(gvr, namespace, name)...).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return deletion{}, err
	}
	// A Status says that the object is gone; the object itself, that something is pending.
	return deletion{Gone: answer.Live.GetKind() == "Status"}, nil
}

// readWritten decodes an answer that is one object.
func readWritten(result rest.Result) (written, error) {
	var answer written
	for _, w := range result.Warnings() {
		answer.Warnings = append(answer.Warnings, w.Text)
	}
	result.WasCreated(&answer.Created)
	body, err := result.Raw()
	if err != nil {
		// The decoded Status, where there is one, says more than Raw's error.
		if decoded := result.Error(); decoded != nil {
			err = decoded
		}
		return answer, err
	}
	answer.Live = &unstructured.Unstructured{}
	if err := answer.Live.UnmarshalJSON(body); err != nil {
		return answer, fmt.Errorf("decode the API server's answer: %w", err)
	}
	return answer, nil
}

// objectPath returns the segments of an object's URL.
func objectPath(gvr schema.GroupVersionResource, namespace, name string) []string {
	path := []string{"/apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		path = []string{"/api", gvr.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	path = append(path, gvr.Resource)
	if name != "" {
		path = append(path, name)
	}
	return path
}

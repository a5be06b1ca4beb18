package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
)

// FieldManager is the name under which kubesync owns fields (server-side apply).
const FieldManager = "kubesync"

// listPage is how many objects one list request returns. Pages bound the memory
// that a large cluster costs here and on the API server.
const listPage = 500

// acceptMetadata asks for an answer's metadata alone, and in protobuf: of what was
// Answer that is all that has to be known, and the cheapest to send and to read.
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// Client talks to one API server under one identity.
type Client struct {
	objects  rest.Interface // answers are whole objects, as JSON
	partial  rest.Interface // answers are metadata
	metadata metadata.Interface
}

// NewClient builds the client for the identity that config carries.
func NewClient(config *rest.Config, transport *http.Client) (*Client, error) {
	objects, err := pathClient(dynamic.ConfigFor(config), transport)
	if err != nil {
		return nil, err
	}
	partial, err := pathClient(metadata.ConfigFor(config), transport)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), transport)
	if err != nil {
		return nil, fmt.Errorf("build the metadata client for the API server: %w", err)
	}
	return &Client{objects: objects, partial: partial, metadata: meta}, nil
}

// pathClient builds a client whose every request names its whole path.
func pathClient(config *rest.Config, transport *http.Client) (rest.Interface, error) {
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/unused"
	built, err := rest.RESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("build the client for the API server: %w", err)
	}
	return built, nil
}

// LiveObject is what an answer holds of an object: all of it, or its metadata.
type LiveObject interface {
	metav1.Object
	runtime.Object
}

// Answer is the API server's answer to a write.
type Answer struct {
	Live     LiveObject
	Created  bool
	Warnings []string
}

// Apply sends one server-side apply as manager. The answer holds the object's
// metadata; of a Job, whose status counts, all.
func (c *Client) Apply(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured, manager string) (Answer, error) {
	answer, warnings, err := withoutNulls(object, func(sent *unstructured.Unstructured) (Answer, error) {
		return c.applyOnce(ctx, gvr, sent, manager)
	})
	answer.Warnings = append(answer.Warnings, warnings...)
	return answer, err
}

// applyOnce is apply of an object as it is.
func (c *Client) applyOnce(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured, manager string) (Answer, error) {
	through, whole := c.partial, manifest.IDOf(object).GroupKind() == manifest.JobKind
	if whole {
		through = c.objects
	}
	request, err := c.applying(through, gvr, object, manager)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	if whole {
		answer, err = readWritten(request.Do(ctx))
	} else {
		answer, err = readPartial(request.SetHeader("Accept", acceptMetadata).Do(ctx))
	}
	if err == nil {
		err = aboutApply(answer.Live, object, manager)
	}
	return answer, err
}

// DryRun sends one server-side apply of which nothing is stored, and returns the
// whole object as it would be.
func (c *Client) DryRun(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured) (*unstructured.Unstructured, []string, error) {
	answer, warnings, err := withoutNulls(object, func(sent *unstructured.Unstructured) (Answer, error) {
		request, err := c.applying(c.objects, gvr, sent, FieldManager)
		if err != nil {
			return Answer{}, err
		}
		return aboutIt(sent.GetNamespace(), sent.GetName())(readWritten(request.Param("dryRun", metav1.DryRunAll).Do(ctx)))
	})
	whole, _ := answer.Live.(*unstructured.Unstructured)
	return whole, append(answer.Warnings, warnings...), err
}

// applying builds the request of a server-side apply.
func (c *Client) applying(through rest.Interface, gvr schema.GroupVersionResource, object *unstructured.Unstructured, manager string) (*rest.Request, error) {
	body, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: manager, Force: &force, FieldValidation: metav1.FieldValidationStrict}
	return patching(through, gvr, object.GetNamespace(), object.GetName(), types.ApplyPatchType, body, options), nil
}

// Patch sends one patch of any type. The answer holds the object's metadata.
func (c *Client) Patch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, kind types.PatchType, body []byte, options metav1.PatchOptions) (Answer, error) {
	return aboutIt(namespace, name)(readPartial(patching(c.partial, gvr, namespace, name, kind, body, options).SetHeader("Accept", acceptMetadata).Do(ctx)))
}

// patching builds the request of a patch.
func patching(through rest.Interface, gvr schema.GroupVersionResource, namespace, name string, kind types.PatchType, body []byte, options metav1.PatchOptions) *rest.Request {
	return through.Patch(kind).AbsPath(objectPath(gvr, namespace, name)...).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		Body(body)
}

// Get reads one whole object.
func (c *Client) Get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	answer, err := aboutIt(namespace, name)(readWritten(c.objects.Get().AbsPath(objectPath(gvr, namespace, name)...).Do(ctx)))
	whole, _ := answer.Live.(*unstructured.Unstructured)
	return whole, err
}

// GetMetadata reads one object's metadata.
func (c *Client) GetMetadata(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	live, err := c.metadata.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return live, CheckName(live, namespace, name)
}

// ListMetadata calls visit with the metadata of every object that matches the
// selector, page by page, in one namespace or (namespace "") in all.
func (c *Client) ListMetadata(ctx context.Context, gvr schema.GroupVersionResource, namespace, selector string, visit func(*metav1.PartialObjectMetadata)) error {
	options := metav1.ListOptions{LabelSelector: selector, Limit: listPage}
	for {
		page, err := c.metadata.Resource(gvr).Namespace(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		objects := make([]metav1.Object, len(page.Items))
		for i := range page.Items {
			objects[i] = &page.Items[i]
		}
		if err := soundList(page, objects, namespace, options); err != nil {
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

// soundList returns what shows that a list is not what was asked for; nil if nothing does.
func soundList(list metav1.ListInterface, objects []metav1.Object, namespace string, options metav1.ListOptions) error {
	for _, o := range objects {
		if namespace != "" && o.GetNamespace() != namespace {
			return fmt.Errorf("the API server sent %s/%s where namespace %s was asked for", o.GetNamespace(), o.GetName(), namespace)
		}
	}
	return follow.CheckList(list, objects, options)
}

// Deletion is what the API server made of a delete.
type Deletion struct {
	Gone bool // at once; otherwise a finalizer or a grace period is pending
}

// Delete removes one object, but only the very one and the very version that was
// looked at: uid and, unless empty, resourceVersion are preconditions.
func (c *Client) Delete(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID, resourceVersion string) (Deletion, error) {
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
		return Deletion{}, fmt.Errorf("encode the delete options: %w", err)
	}
	answer, err := readWritten(c.objects.Delete().AbsPath(objectPath(gvr, namespace, name)...).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return Deletion{}, err
	}
	// A Status says that the object is gone; the object itself, that something is pending.
	if answer.Live.GetObjectKind().GroupVersionKind().Kind == "Status" {
		return Deletion{Gone: true}, nil
	}
	return Deletion{}, CheckName(answer.Live, namespace, name)
}

// aboutIt refuses an answer that is not about the object of that name.
func aboutIt(namespace, name string) func(Answer, error) (Answer, error) {
	return func(answer Answer, err error) (Answer, error) {
		if err == nil {
			err = CheckName(answer.Live, namespace, name)
		}
		return answer, err
	}
}

// readWritten decodes an answer that is one whole object.
func readWritten(result rest.Result) (Answer, error) {
	answer := aboutWrite(result)
	body, err := result.Raw()
	if err != nil {
		// The decoded Status, where there is one, says more than Raw's error.
		if decoded := result.Error(); decoded != nil {
			err = decoded
		}
		return answer, err
	}
	whole := &unstructured.Unstructured{}
	if err := whole.UnmarshalJSON(body); err != nil {
		return answer, fmt.Errorf("decode the API server's answer: %w", err)
	}
	answer.Live = whole
	return answer, nil
}

// readPartial decodes an answer that is one object's metadata.
func readPartial(result rest.Result) (Answer, error) {
	answer := aboutWrite(result)
	if err := result.Error(); err != nil {
		return answer, err
	}
	decoded, err := result.Get()
	if err != nil {
		return answer, fmt.Errorf("decode the API server's answer: %w", err)
	}
	partial, ok := decoded.(*metav1.PartialObjectMetadata)
	if !ok {
		return answer, fmt.Errorf("the API server's answer is a %T and no object's metadata", decoded)
	}
	answer.Live = partial
	return answer, nil
}

// aboutWrite reads what an answer says beside its body.
func aboutWrite(result rest.Result) Answer {
	var answer Answer
	for _, w := range result.Warnings() {
		answer.Warnings = append(answer.Warnings, w.Text)
	}
	result.WasCreated(&answer.Created)
	return answer
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

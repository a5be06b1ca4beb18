package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Resource implements follow.Resource by two functions of a client. A watch is passed on
// as it is: watch.Filter would leave a goroutine behind whenever one is stopped that has
// more to send.
type Resource[L runtime.Object] struct {
	list  func(context.Context, metav1.ListOptions) (L, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// fits returns what is wrong with an object that was not asked for.
	fits func(runtime.Object) error
}

// List implements follow.Resource.
func (f Resource[L]) List(ctx context.Context, options metav1.ListOptions, visit func(metav1.Object)) (metav1.ListInterface, error) {
	list, err := f.list(ctx, options)
	if err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err == nil {
			err = f.fits(item)
		}
		if err == nil {
			visit(object)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return meta.ListAccessor(list)
}

// Watch implements follow.Resource.
func (f Resource[L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return f.watch(ctx, options)
}

// Fits implements follow.Resource.
func (f Resource[L]) Fits(object runtime.Object) error { return f.fits(object) }

// typed reports whether an object is of a Go type.
func typed[T runtime.Object](object runtime.Object) error {
	if _, ok := object.(T); !ok {
		return fmt.Errorf("the API server sent a %T, which was not asked for", object)
	}
	return nil
}

// TypedResource follows what a typed client lists and watches.
func TypedResource[O, L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error),
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error),
) Resource[L] {
	return Resource[L]{list, watch, typed[O]}
}

// FollowMetadata follows the metadata of a resource, in one namespace or (namespace "")
// in all.
func (c *Client) FollowMetadata(gvr schema.GroupVersionResource, namespace string) Resource[*metav1.PartialObjectMetadataList] {
	client := c.metadata.Resource(gvr).Namespace(namespace)
	return TypedResource[*metav1.PartialObjectMetadata](client.List, client.Watch)
}

// FollowObjects follows whole objects of one kind.
func (c *Client) FollowObjects(gk schema.GroupKind, gvr schema.GroupVersionResource, namespace string) Resource[*unstructured.UnstructuredList] {
	path := objectPath(gvr, namespace, "")
	version := schema.GroupVersion{Version: "v1"}
	return Resource[*unstructured.UnstructuredList]{
		list: func(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			body, err := c.objects.Get().AbsPath(path...).
				SpecificallyVersionedParams(&options, metav1.ParameterCodec, version).Do(ctx).Raw()
			if err != nil {
				return nil, err
			}
			return list, list.UnmarshalJSON(body)
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.objects.Get().AbsPath(path...).
				SpecificallyVersionedParams(&options, metav1.ParameterCodec, version).Watch(ctx)
		},
		fits: func(object runtime.Object) error {
			if got := object.GetObjectKind().GroupVersionKind(); got.GroupKind() != gk {
				return fmt.Errorf("the API server sent a %s where %s was asked for", got.GroupKind(), gk)
			}
			return nil
		},
	}
}

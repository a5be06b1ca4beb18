package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// followed implements follow.Resource by two functions of a client.
type followed[L runtime.Object] struct {
	list  func(context.Context, metav1.ListOptions) (L, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// List implements follow.Resource.
func (f followed[L]) List(ctx context.Context, options metav1.ListOptions, visit func(metav1.Object)) (metav1.ListInterface, error) {
	list, err := f.list(ctx, options)
	if err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
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
func (f followed[L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return f.watch(ctx, options)
}

// followMetadata follows the metadata of a resource, in one namespace or (namespace "")
// in all.
func (c *client) followMetadata(gvr schema.GroupVersionResource, namespace string) followed[*metav1.PartialObjectMetadataList] {
	resource := c.metadata.Resource(gvr).Namespace(namespace)
	return followed[*metav1.PartialObjectMetadataList]{resource.List, resource.Watch}
}

// followWhole follows whole objects.
func (c *client) followWhole(gvr schema.GroupVersionResource, namespace string) followed[*unstructured.UnstructuredList] {
	path := objectPath(gvr, namespace, "")
	version := schema.GroupVersion{Version: "v1"}
	return followed[*unstructured.UnstructuredList]{
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
	}
}

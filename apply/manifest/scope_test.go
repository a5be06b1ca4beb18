package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	extensionscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/runtime"
	schema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/test/golden"
)

// The list of built-in kinds is what the typed clients of the pinned Kubernetes
// version say: a client that wants a namespace is of a namespaced kind, and one
// that can UpdateStatus of a kind with a status subresource. The types themselves
// say when their version was removed, and what to write instead. The binary carries
// the list, not the clients.
func TestBuiltinKinds(t *testing.T) {
	t.Parallel()
	kinds := clientKinds(t, reflect.TypeFor[kubernetes.Interface](), scheme.Scheme)
	kinds = append(kinds, clientKinds(t, reflect.TypeFor[apiextensions.Interface](), extensionscheme.Scheme)...)
	kinds = append(kinds, "apiregistration.k8s.io/v1 APIService cluster status") // its client is in a module of its own
	slices.Sort(kinds)
	golden.Check(t, "builtin_kinds.txt", "\n"+strings.Join(slices.Compact(kinds), "\n")+"\n")
}

// clientKinds reads the kinds off the methods of a set of typed clients.
func clientKinds(t *testing.T, clients reflect.Type, types *runtime.Scheme) []string {
	t.Helper()
	var kinds []string
	for group := range clients.Methods() {
		if group.Name == "Discovery" {
			continue
		}
		for kind := range group.Type.Out(0).Methods() {
			if kind.Name == "RESTClient" {
				continue
			}
			client := kind.Type.Out(0)
			create, can := client.MethodByName("Create")
			if !can {
				continue
			}
			object := reflect.New(create.Type.In(1).Elem()).Interface().(runtime.Object)
			gvks, _, err := types.ObjectKinds(object)
			if err != nil {
				t.Fatal(err)
			}
			scope, status := "cluster", ""
			if kind.Type.NumIn() == 1 {
				scope = "namespaced"
			}
			if _, has := client.MethodByName("UpdateStatus"); has {
				status = " status"
			}
			apiVersion, name := gvks[0].ToAPIVersionAndKind()
			kinds = append(kinds, fmt.Sprintf("%s %s %s%s%s", apiVersion, name, scope, status, removal(t, object)))
		}
	}
	return kinds
}

// removal says that the newest supported Kubernetes does not serve a type any more,
// since when, and what took its place; nothing if it does serve it.
func removal(t *testing.T, object runtime.Object) string {
	t.Helper()
	ends, ending := object.(interface{ APILifecycleRemoved() (major, minor int) })
	if !ending {
		return ""
	}
	major, minor := ends.APILifecycleRemoved()
	var newest [2]int
	if _, err := fmt.Sscanf(openapi.Version(), "%d.%d", &newest[0], &newest[1]); err != nil {
		t.Fatal(err)
	}
	if major > newest[0] || major == newest[0] && minor > newest[1] {
		return ""
	}
	text := fmt.Sprintf(" removed %d.%d", major, minor)
	if replaced, has := object.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); has {
		text += " " + replaced.APILifecycleReplacement().GroupVersion().String()
	}
	return text
}

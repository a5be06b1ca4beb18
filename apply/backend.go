package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/manifest"
)

var serviceKind = schema.GroupKind{Kind: "Service"}

// notBefore returns what a webhook configuration or APIService waits for: a Service that
// it names, or a workload behind that, which this sync could not apply. Written all the
// same, it could refuse requests that nothing answers. It returns "" if nothing is the matter.
func notBefore(o manifest.Object, objects []manifest.Object, outcomes []Outcome) string {
	if !inTheWay(o.ID().GroupKind()) {
		return ""
	}
	troubled := map[manifest.ID]Action{}
	for _, outcome := range outcomes {
		switch outcome.Action {
		case Failed, Refused, Pending:
			troubled[outcome.ID] = outcome.Action
		}
	}
	if len(troubled) == 0 {
		return ""
	}
	for _, service := range servicesOf(o.Tree().Object) {
		if action, found := troubled[service]; found {
			return fmt.Sprintf("waits for %s, which answers its requests and was %s", service, action)
		}
		for _, workload := range behind(service, objects) {
			if action, found := troubled[workload]; found {
				return fmt.Sprintf("waits for %s, which is behind %s and was %s", workload, service, action)
			}
		}
	}
	return ""
}

// servicesOf returns the Services that a webhook configuration or an APIService names.
func servicesOf(object map[string]any) []manifest.ID {
	clients := []map[string]any{manifest.MapAt(object, "spec")} // an APIService's
	for _, webhook := range manifest.MapsAt(object, "webhooks") {
		clients = append(clients, manifest.MapAt(webhook, "clientConfig"))
	}
	var services []manifest.ID
	for _, client := range clients {
		service := manifest.MapAt(client, "service")
		name, named := service["name"].(string)
		namespace, placed := service["namespace"].(string)
		if named && placed {
			services = append(services, manifest.ID{Kind: serviceKind.Kind, Namespace: namespace, Name: name})
		}
	}
	return services
}

// behind returns those of the objects whose pods a Service among them selects.
func behind(service manifest.ID, objects []manifest.Object) []manifest.ID {
	var selector map[string]any
	for _, o := range objects {
		if o.ID() == service {
			selector = manifest.MapAt(o.Tree().Object, "spec", "selector")
		}
	}
	if len(selector) == 0 {
		return nil
	}
	var workloads []manifest.ID
	for _, o := range objects {
		if _, makesPods := manifest.PodTemplatePath(o.ID().GroupKind()); !makesPods || o.ID().Namespace != service.Namespace {
			continue
		}
		labels := manifest.MapAt(manifest.PodTemplate(o.Tree().Object, o.ID().GroupKind()), "metadata", "labels")
		if selects(selector, labels) {
			workloads = append(workloads, o.ID())
		}
	}
	return workloads
}

// selects reports whether labels have all that a selector asks for.
func selects(selector, labels map[string]any) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

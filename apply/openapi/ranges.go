package openapi

import "k8s.io/kube-openapi/pkg/validation/spec"

// portRange is which numbers a field may hold: ports, and 0 where that stands for
// "none" or "the same".
type portRange struct {
	field string
	from  float64
}

// ports names the fields that hold ports. The API server checks them in code
// that no module offers; a test holds each against it.
func ports() map[string][]portRange {
	return map[string][]portRange{
		"io.k8s.api.core.v1.ContainerPort":                                          {{"containerPort", 1}, {"hostPort", 0}},
		"io.k8s.api.core.v1.HTTPGetAction":                                          {{"port", 1}},
		"io.k8s.api.core.v1.TCPSocketAction":                                        {{"port", 1}},
		"io.k8s.api.core.v1.GRPCAction":                                             {{"port", 1}},
		"io.k8s.api.core.v1.ServicePort":                                            {{"port", 1}, {"targetPort", 0}, {"nodePort", 0}},
		"io.k8s.api.core.v1.EndpointPort":                                           {{"port", 1}},
		"io.k8s.api.discovery.v1.EndpointPort":                                      {{"port", 1}},
		"io.k8s.api.networking.v1.ServiceBackendPort":                               {{"number", 0}},
		"io.k8s.api.networking.v1.NetworkPolicyPort":                                {{"port", 1}, {"endPort", 1}},
		"io.k8s.api.admissionregistration.v1.ServiceReference":                      {{"port", 1}},
		"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference": {{"port", 1}},
		"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference":       {{"port", 1}},
	}
}

// lastPort is the largest number that a port has.
const lastPort = 65535

// optional names the fields that are required according to the schema alone: the
// API server takes them for empty.
func optional() map[string]string {
	return map[string]string{
		"io.k8s.api.core.v1.HTTPHeader":      "value",
		"io.k8s.api.core.v1.Sysctl":          "value",
		"io.k8s.api.storage.v1.TokenRequest": "audience",
	}
}

// amend brings a published definition to what the API server checks.
func amend(name string, definition *spec.Schema) {
	for _, port := range ports()[name] {
		property := definition.Properties[port.field]
		if len(property.Type) == 0 { // a reference to IntOrString, beside which nothing may stand
			property = spec.Schema{SchemaProps: spec.SchemaProps{Format: intOrString}}
		}
		from, to := port.from, float64(lastPort)
		property.Minimum, property.Maximum = &from, &to
		definition.Properties[port.field] = property
	}
	var required []string
	for _, field := range definition.Required {
		// What has a default other than an empty text is taken for that if it is absent.
		if absent := definition.Properties[field].Default; (absent == nil || absent == "") && optional()[name] != field {
			required = append(required, field)
		}
	}
	definition.Required = required
}

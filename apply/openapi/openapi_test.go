package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kubesync/kubesync/test/lab/cluster"
)

// gadgets defines a kind with one of everything that a schema can say.
const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          metadata: {type: object}
          spec:
            type: object
            required: [size]
            properties:
              size: {type: string, enum: [small, large]}
              port: {type: integer, minimum: 1, maximum: 65535}
              ratio: {type: number}
              code: {type: string, pattern: '^[a-z]+$', maxLength: 4}
              map: {type: object, additionalProperties: {type: string}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              either: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              list: {type: array, maxItems: 3, items: {type: string}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              named:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, up]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, up: {type: boolean, default: true}, v: {type: integer}}
              one: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}
              half: {type: number, multipleOf: 0.5, minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: true}
              any: {type: string, anyOf: [{minLength: 5}, {pattern: '^x'}], not: {enum: [xxx]}, allOf: [{maxLength: 6}]}
              few: {type: object, minProperties: 1, maxProperties: 2, additionalProperties: {type: integer, format: int32}}
              some: {type: array, minItems: 1, items: {type: integer}}
              object: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
`

// attempt is a manifest and what is wrong with it.
type attempt struct {
	manifest string
	want     []string
	// alone says that the API server accepts it, at least where nothing is stored,
	// although no one can have meant it.
	alone bool
}

// deployment wraps a container's fields; and fields of the Deployment's spec.
func deployment(container, spec string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, "+
		"template: {metadata: {labels: {a: b}, creationTimestamp: null}, spec: {containers: [{name: c, image: i, %s}]}}, %s}}", container, spec)
}

func gadget(spec string) string {
	return fmt.Sprintf("{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g}, spec: {size: small, %s}}", spec)
}

func service(port string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: NodePort, ports: [{%s}]}}", port)
}

const container0 = ".spec.template.spec.containers[0]"

func attempts() map[string]attempt {
	return map[string]attempt{
		"a good Deployment": {manifest: deployment("ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}], resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 0.5}}, "+
			"livenessProbe: {httpGet: {port: 80}}, readinessProbe: {tcpSocket: {port: web}}, env: [{name: A, value: null}], args: null, imagePullPolicy: ''",
			"replicas: null, strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}")},
		"unknown fields": {manifest: deployment("nosuch: 1, imgae: x", "repliacs: 3"), want: []string{
			".spec.repliacs: field not declared in schema", container0 + ".imgae: field not declared in schema", container0 + ".nosuch: field not declared in schema"}},
		"unknown field of metadata": {manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, label: {}}}", want: []string{".metadata.label: field not declared in schema"}},
		"wrong types": {manifest: deployment("env: [{name: A, value: 1}, {name: B, value: true}, {name: C, value: [x]}, {name: D, value: {x: z}}], args: [1], command: sh, tty: 'yes', stdin: 1",
			"replicas: '3', paused: 'true', minReadySeconds: [1], strategy: Recreate"), want: []string{
			".spec.minReadySeconds: must be an integer, not a list",
			".spec.paused: must be a boolean, not a string, which is what stands in quotes",
			".spec.replicas: must be an integer, not a string, which is what stands in quotes",
			".spec.strategy: must be a mapping, not a string",
			container0 + ".args[0]: must be a string, not a number, put it in quotes",
			container0 + ".command: must be a list, not a string",
			container0 + ".env[0].value: must be a string, not a number, put it in quotes",
			container0 + ".env[1].value: must be a string, not a boolean, put it in quotes",
			container0 + ".env[2].value: must be a string, not a list",
			container0 + ".env[3].value: must be a string, not a mapping",
			container0 + ".stdin: must be a boolean, not a number",
			container0 + ".tty: must be a boolean, not a string, which is what stands in quotes"}},
		"a fraction":         {manifest: deployment("", "replicas: 1.5"), want: []string{".spec.replicas: must be an integer, not a fraction"}},
		"a number too large": {manifest: deployment("", "replicas: 99999999999"), want: []string{".spec.replicas: should be between -2147483648 and 2147483647"}, alone: true},
		"quantities": {manifest: deployment("resources: {limits: {cpu: lots, memory: 1GB, ephemeral-storage: true}}", ""), want: []string{
			container0 + ".resources.limits.cpu: is no quantity", container0 + ".resources.limits.ephemeral-storage: must be a quantity, not a boolean",
			container0 + ".resources.limits.memory: is no quantity"}},
		"neither number nor name": {manifest: deployment("livenessProbe: {httpGet: {port: 1.5}}, readinessProbe: {httpGet: {port: true}}", ""), want: []string{
			container0 + ".livenessProbe.httpGet.port: must be an integer or a string, not a fraction",
			container0 + ".readinessProbe.httpGet.port: must be an integer or a string, not a boolean"}},
		"missing": {manifest: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{image: i}]}}}}", want: []string{
			".spec.selector: is required", container0 + ".name: is required"}},
		"not among the values": {manifest: deployment("imagePullPolicy: Sometimes", ""), want: []string{container0 + ".imagePullPolicy: should be one of [Always IfNotPresent Never]"}},
		"repeated": {manifest: deployment("volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]", ""), want: []string{
			container0 + ".volumeMounts[1]: duplicate entry: item 0 has the same mountPath"}},
		"not base64":       {manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, binaryData: {a: '!'}}", want: []string{".binaryData.a: is not base64"}},
		"a number as data": {manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a.b: 123}}", want: []string{".data.a.b: must be a string, not a number, put it in quotes"}},

		"container ports": {manifest: deployment("ports: [{containerPort: 99999}, {containerPort: 80, hostPort: 65536}, {containerPort: -1}]", ""), want: []string{
			container0 + ".ports[0].containerPort: should be less than or equal to 65535", container0 + ".ports[1].hostPort: should be less than or equal to 65535",
			container0 + ".ports[2].containerPort: should be greater than or equal to 1"}},
		"ports of probes": {manifest: deployment("livenessProbe: {httpGet: {port: 99999}}, readinessProbe: {tcpSocket: {port: 0}}, startupProbe: {grpc: {port: 65536}}", ""), want: []string{
			container0 + ".livenessProbe.httpGet.port: should be less than or equal to 65535", container0 + ".readinessProbe.tcpSocket.port: should be greater than or equal to 1",
			container0 + ".startupProbe.grpc.port: should be less than or equal to 65535"}},
		"a Service":           {manifest: service("port: 1, targetPort: 0, nodePort: 0")},
		"port of a Service":   {manifest: service("port: 99999"), want: []string{".spec.ports[0].port: should be less than or equal to 65535"}},
		"target of a Service": {manifest: service("port: 80, targetPort: 99999"), want: []string{".spec.ports[0].targetPort: should be less than or equal to 65535"}},
		"node port":           {manifest: service("port: 80, nodePort: 99999"), want: []string{".spec.ports[0].nodePort: should be less than or equal to 65535"}, alone: true},
		"port of an Ingress": {manifest: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {defaultBackend: {service: {name: s, port: {number: 99999}}}}}",
			want: []string{".spec.defaultBackend.service.port.number: should be less than or equal to 65535"}},
		"ports of a NetworkPolicy": {manifest: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: policy}, spec: {podSelector: {}, ingress: [{ports: [{port: 0}, {port: 1, endPort: 99999}]}]}}",
			want: []string{".spec.ingress[0].ports[0].port: should be greater than or equal to 1", ".spec.ingress[0].ports[1].endPort: should be less than or equal to 65535"}},
		"port of an EndpointSlice": {manifest: "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e}, addressType: IPv4, endpoints: [], ports: [{port: 99999}]}",
			want: []string{".ports[0].port: should be less than or equal to 65535"}, alone: true},
		"port of Endpoints": {manifest: "{apiVersion: v1, kind: Endpoints, metadata: {name: e}, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 99999}]}]}",
			want: []string{".subsets[0].ports[0].port: should be less than or equal to 65535"}},
		"port of a webhook": {manifest: "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {name: a, namespace: b, port: 99999}}}]}",
			want: []string{".webhooks[0].clientConfig.service.port: should be less than or equal to 65535"}},
		"port of an APIService": {manifest: "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.net}, spec: {group: example.net, version: v1, groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true, service: {name: a, namespace: b, port: 99999}}}",
			want: []string{".spec.service.port: should be less than or equal to 65535"}},
		"port of a conversion webhook": {manifest: strings.Replace(gadgets, "  scope:", "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b, port: 99999}}}}\n  scope:", 1),
			want: []string{".spec.conversion.webhook.clientConfig.service.port: should be less than or equal to 65535"}},

		"required by the schema alone": {manifest: deployment("livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: A}]}}", "")},
		"a NetworkPolicy for all pods": {manifest: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: policy}, spec: {}}"},
		"a CSIDriver with defaults":    {manifest: "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: c.example.com}, spec: {tokenRequests: [{expirationSeconds: 600}]}}"},
		"a CustomResourceDefinition":   {manifest: gadgets},

		"a good Gadget": {manifest: gadget("port: 80, ratio: 1, code: abc, map: {a.b: c}, free: {x: [1, {z: null}]}, either: 1, list: [a], half: 1.5, any: xa, few: {a: 1}, some: [1], set: [a, b], " +
			"named: [{name: a}, {name: a, up: false}], one: {a: x}, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {}}")},
		"unknown fields of a Gadget": {manifest: gadget("nosuch: 1, one: {a: x, c: z}"), want: []string{
			".spec.nosuch: field not declared in schema", ".spec.one.c: field not declared in schema"}},
		"unknown metadata of a Gadget": {manifest: "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, label: {}}, spec: {size: small}}",
			want: []string{".metadata.label: field not declared in schema"}},
		"wrong types in a Gadget": {manifest: gadget("port: '80', ratio: x, code: 1, map: [], list: {}, either: true, set: [1], named: [1]"), want: []string{
			".spec.code: must be a string, not a number, put it in quotes", ".spec.either: must be an integer or a string, not a boolean", ".spec.list: must be a list, not a mapping",
			".spec.map: must be a mapping, not a list", ".spec.named[0]: must be a mapping, not a number", ".spec.port: must be an integer, not a string, which is what stands in quotes",
			".spec.ratio: must be a number, not a string, which is what stands in quotes", ".spec.set[0]: must be a string, not a number, put it in quotes"}},
		"rules of a Gadget": {manifest: gadget("port: 99999, code: ABC, list: [a, b, c, d], one: {a: x, b: z}"), want: []string{
			".spec.code: should match '^[a-z]+$'", ".spec.list: should have at most 3 items",
			".spec.one: fits 2 of the alternatives", ".spec.port: should be less than or equal to 65535"}},
		"more rules of a Gadget": {manifest: gadget("half: 0, any: xxx, few: {}, some: []"), want: []string{
			".spec.any: is what its schema excludes", ".spec.few: should have at least 1 fields", ".spec.half: should be greater than 0", ".spec.some: should have at least 1 items"}},
		"other rules of a Gadget": {manifest: gadget("half: 9, any: abc, few: {a: 1, b: 2, c: 3}, code: ''"), want: []string{
			".spec.any: fits none of the alternatives", ".spec.code: should match", ".spec.few: should have at most 2 fields", ".spec.half: should be less than 9"}},
		"joined rules of a Gadget": {manifest: gadget("half: 1.2, any: abcdefg, code: abcde"), want: []string{
			".spec.any: should have at most 6 characters", ".spec.code: should have at most 4 characters", ".spec.half: should be a multiple of 0.5"}},
		"repeated in a Gadget": {manifest: gadget("set: [a, a], named: [{name: a}, {name: a, up: true}]"), want: []string{
			".spec.named[1]: duplicate entry: item 0 has the same name and up", ".spec.set[1]: duplicate entry: item 0 is the same"}},
		"missing in a Gadget":     {manifest: "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g}, spec: {size: null, named: [{}]}}", want: []string{".spec.named[0].name: is required", ".spec.size: is required"}},
		"no spec of a Gadget":     {manifest: "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g}}", want: []string{".spec: is required"}},
		"not a value of a Gadget": {manifest: gadget("size: medium"), want: []string{".spec.size: should be one of [small large]"}},
		"what is in a Gadget":     {manifest: gadget("object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: 1}}}"), want: []string{".spec.object.metadata.labels.a: must be a string, not a number, put it in quotes"}},
	}
}

// decode reads YAML as manifests are read.
func decode(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// withGadgets returns the kinds of Kubernetes and Gadgets.
func withGadgets(t testing.TB) *Schemas {
	t.Helper()
	schemas := Builtin()
	if err := schemas.Define(decode(t, gadgets).Object); err != nil {
		t.Fatal(err)
	}
	return schemas
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, test := range attempts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := decode(t, test.manifest)
			faults, known := withGadgets(t).Validate(object.GroupVersionKind(), object.Object)
			var got []string
			for _, fault := range faults {
				got = append(got, fault.String())
			}
			slices.Sort(got)
			matches := func(got, want string) bool { return strings.HasPrefix(got, want) }
			slices.Sort(test.want)
			if !known || !slices.EqualFunc(got, test.want, matches) {
				t.Errorf("known: %t, got:\n%s\nwant:\n%s", known, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// What is refused here the API server refuses, and what it accepts is accepted here.
func TestTheAPIServerAgrees(t *testing.T) {
	t.Parallel()
	client := dynamic.NewForConfigOrDie(cluster.Start(t).Config())
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := client.Resource(crds).Create(t.Context(), decode(t, gadgets), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, test := range attempts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := rehearse(t.Context(), client, decode(t, test.manifest))
			switch refused := err != nil; {
			case refused && len(test.want) == 0:
				t.Errorf("the API server refuses what is accepted here: %v", err)
			case !refused && len(test.want) > 0 && !test.alone:
				t.Errorf("the API server accepts it")
			case refused && test.alone:
				t.Errorf("the API server refuses it, too: %v", err)
			}
		})
	}
}

// rehearse applies an object of which nothing is stored, once its kind is served.
func rehearse(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	kind := object.GroupVersionKind()
	plural := map[string]string{"NetworkPolicy": "networkpolicies", "Ingress": "ingresses", "Endpoints": "endpoints"}[kind.Kind]
	if plural == "" {
		plural = strings.ToLower(kind.Kind) + "s"
	}
	resource := client.Resource(kind.GroupVersion().WithResource(plural))
	namespaced := !slices.Contains([]string{"CustomResourceDefinition", "APIService", "ValidatingWebhookConfiguration", "CSIDriver"}, kind.Kind)
	force := true
	options := metav1.PatchOptions{FieldManager: "kubesync", Force: &force, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	for {
		if namespaced {
			_, err = resource.Namespace("default").Patch(ctx, object.GetName(), types.ApplyPatchType, text, options)
		} else {
			_, err = resource.Patch(ctx, object.GetName(), types.ApplyPatchType, text, options)
		}
		if err == nil || !strings.Contains(err.Error(), "could not find the requested resource") {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Every name that the corrections of the published schemas go by is published.
func TestAmendments(t *testing.T) {
	t.Parallel()
	schemas := Builtin()
	for name, fields := range ports() {
		for _, port := range fields {
			if property, found := schemas.definition(name).Properties[port.field]; !found || *property.Maximum != lastPort {
				t.Errorf("%s has no %s", name, port.field)
			}
		}
	}
	for name, field := range optional() {
		if _, found := schemas.definition(name).Properties[field]; !found {
			t.Errorf("%s has no %s", name, field)
		}
	}
}

// A schema that cannot be used leaves its kind unknown, and ends nothing.
func TestUnusableDefinitions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"a reference":    {"{type: number}", "{$ref: '#/definitions/x'}"},
		"no schema":      {"openAPIV3Schema:", "openAPIV2Schema:"},
		"not even close": {"properties:\n          metadata: {type: object}", "properties: 1\n        x:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schemas := Builtin()
			err := schemas.Define(decode(t, strings.Replace(gadgets, change[0], change[1], 1)).Object)
			object := decode(t, gadget(""))
			if faults, known := schemas.Validate(object.GroupVersionKind(), object.Object); known {
				t.Errorf("known (%v): %v", err, faults)
			}
		})
	}
}

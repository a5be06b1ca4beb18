package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// prepared returns what Check makes of one manifest: the YAML that is sent, and
// then warnings and problems, a line each.
func prepared(t *testing.T, text string) string {
	t.Helper()
	checked, err := Check(objectsOf(t, text), Rules{})
	var b strings.Builder
	for _, o := range checked.Objects {
		b.WriteString(toYAML(o.Tree()))
	}
	for _, w := range checked.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	if err != nil {
		fmt.Fprintf(&b, "problem %s\n", strings.ReplaceAll(err.Error(), "\n", "\nproblem "))
	}
	return b.String()
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"exported with kubectl get -o yaml": {`apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  namespace: team
  uid: 1b1e
  resourceVersion: "12"
  generation: 3
  creationTimestamp: "2020-01-01T00:00:00Z"
  selfLink: /x
  managedFields: [{manager: x}]
  labels: {applyset.kubernetes.io/part-of: applyset-other-v1}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}
spec: {replicas: 1}
status: {replicas: 1}
`, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  namespace: team
spec:
  replicas: 1
warning m.yaml:1: Deployment/d: label applyset.kubernetes.io/part-of is left out: kubesync sets it itself
`},
		"other labels and annotations stay, null reads as empty": {`apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  labels: {applyset.kubernetes.io/part-of: x, a: b, e: null}
  annotations: {f: null}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, labels: null, annotations: null}
`, `apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    f: ""
  labels:
    a: b
    e: ""
  name: c
  namespace: default
apiVersion: v1
kind: ConfigMap
metadata:
  name: d
  namespace: default
warning m.yaml:1: ConfigMap/c: label applyset.kubernetes.io/part-of is left out: kubesync sets it itself
`},
		"status of a kind without the subresource": {`apiVersion: v1
kind: ConfigMap
metadata: {name: c}
status: {x: z}
`, `apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: default
status:
  x: z
`},
		"status of a kind that the set defines": {
			fmt.Sprintf(widgets, "Namespaced") + bare("example.com/v1", "Widget", "", "w")[:len(bare("example.com/v1", "Widget", "", "w"))-4] + "status: {a: b}\n", `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  names:
    kind: Widget
    plural: widgets
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
  - name: v1beta1
    served: false
  - name: v1alpha1
    served: true
apiVersion: example.com/v1
kind: Widget
metadata:
  name: w
  namespace: default
`},
		"stringData": {`apiVersion: v1
kind: Secret
metadata: {name: s}
data: {a: YQ==, b: Yg==}
stringData: {b: new, c: "", d: null}
`, `apiVersion: v1
data:
  a: YQ==
  b: bmV3
  c: ""
  d: ""
kind: Secret
metadata:
  name: s
  namespace: default
`},
		"stringData alone, and empty": {`apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {b: new}
---
apiVersion: v1
kind: Secret
metadata: {name: e}
stringData: null
`, `apiVersion: v1
data:
  b: bmV3
kind: Secret
metadata:
  name: s
  namespace: default
apiVersion: v1
kind: Secret
metadata:
  name: e
  namespace: default
`},
		"stringData of another kind": {`apiVersion: example.com/v1
kind: Secret
metadata: {name: s}
stringData: {b: new}
`, ""},
		"Secret with mistakes": {`apiVersion: v1
kind: Secret
metadata: {name: s}
data: {a: "not base64", b: 1, ok: eA==}
stringData: {port: 5432}
`, `problem m.yaml:1: Secret/s: stringData["port"] must be a string, not a number, put it in quotes
problem m.yaml:1: Secret/s: data["b"] must be a string, not a number, put it in quotes
problem m.yaml:1: Secret/s: data["a"] is not base64 (plain text belongs into stringData)
`},
		"repeated env": {`apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      initContainers: [{name: i, env: [{name: A, value: "1"}, {name: A, value: "2"}, {name: A, value: "3"}]}]
      containers:
      - {name: c, env: [{name: A, value: "1"}, {name: B, value: $(A)}, {name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}
      - {env: [{name: X, value: a}, {name: X, value: b}]}
      - {name: fine, env: [{name: A}, {name: B}]}
      - {name: none}
`, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  namespace: default
spec:
  template:
    spec:
      containers:
      - env:
        - name: B
          value: $(A)
        - name: A
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        name: c
      - env:
        - name: X
          value: b
      - env:
        - name: A
        - name: B
        name: fine
      - name: none
      initContainers:
      - env:
        - name: A
          value: "3"
        name: i
warning m.yaml:1: Deployment/d: initContainers[i]: env A is set more than once: only its last value is applied
warning m.yaml:1: Deployment/d: containers[c]: env A is set more than once: only its last value is applied
warning m.yaml:1: Deployment/d: containers[1]: env X is set more than once: only its last value is applied
`},
		"the last of repeated ports": {`apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      initContainers:
      - name: i
        restartPolicy: Always
        ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]
      containers:
      - name: c
        ports:
        - {containerPort: 80, name: http}
        - {containerPort: 443, name: https}
        - {containerPort: 80, name: web}
        - {containerPort: 9000, hostPort: 1}
        - {containerPort: 9000, hostPort: 1, name: up}
        - {containerPort: 9000, hostPort: 2}
      - {name: odd, ports: [{containerPort: "80"}, {containerPort: "80"}, {name: a}, {name: b}, 80]}
`, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  namespace: default
spec:
  template:
    spec:
      containers:
      - name: c
        ports:
        - containerPort: 443
          name: https
        - containerPort: 80
          name: web
        - containerPort: 9000
          hostPort: 1
          name: up
        - containerPort: 9000
          hostPort: 2
      - name: odd
        ports:
        - containerPort: "80"
        - containerPort: "80"
        - name: a
        - name: b
        - 80
      initContainers:
      - name: i
        ports:
        - containerPort: 80
          protocol: TCP
        - containerPort: 80
          protocol: UDP
        restartPolicy: Always
warning m.yaml:1: Deployment/d: initContainers[i]: port 80/TCP is declared more than once: only the last is applied
warning m.yaml:1: Deployment/d: containers[c]: port 80/TCP is declared more than once: only the last is applied
warning m.yaml:1: Deployment/d: containers[c]: port 9000/TCP (hostPort 1) is declared more than once: only the last is applied
warning m.yaml:1: Deployment/d: containers[c]: the names of ports http are lost with that: Services and probes that use them find no port
`},
		"ignored fields": {`apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  labels: {a.b/c: x, d: e}
  annotations: {kubesync.io/ignore: 'spec.replicas, metadata.labels.a\.b/c,spec.absent.field,spec.nothing.x,'}
spec: {replicas: 3, paused: true, nothing: null}
`, `apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    kubesync.io/ignore: spec.replicas, metadata.labels.a\.b/c,spec.absent.field,spec.nothing.x,
  labels:
    d: e
  name: d
  namespace: default
spec:
  nothing: null
  paused: true
`},
		"ignored fields with mistakes": {`apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  annotations: {kubesync.io/ignore: 'spec..x,spec.containers[0],metadata.name,kind,metadata.annotations.kubesync\.io/ignore,spec.list.x,spec.text.x'}
spec: {list: [{x: y}], text: t}
`, `problem m.yaml:1: Deployment/d: annotation kubesync.io/ignore: "spec..x" is no field: names separated by dots are, such as spec.replicas
problem m.yaml:1: Deployment/d: annotation kubesync.io/ignore: "spec.containers[0]" is no field: names separated by dots are, such as spec.replicas
problem m.yaml:1: Deployment/d: annotation kubesync.io/ignore: metadata.name cannot be left out
problem m.yaml:1: Deployment/d: annotation kubesync.io/ignore: kind cannot be left out
problem m.yaml:1: Deployment/d: annotation kubesync.io/ignore: metadata.annotations.kubesync\.io/ignore cannot be left out
problem m.yaml:1: Deployment/d: annotation kubesync.io/ignore: spec.list.x leads through spec.list, which is a list and not a mapping
problem m.yaml:1: Deployment/d: annotation kubesync.io/ignore: spec.text.x leads through spec.text, which is a string and not a mapping
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := prepared(t, test.text); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func TestSteering(t *testing.T) {
	t.Parallel()
	const known = "kubesync.io/adopt, kubesync.io/fail-on, kubesync.io/ignore, kubesync.io/prune, kubesync.io/recreate, kubesync.io/suspend, kubesync.io/wait-for are"
	for name, test := range map[string]struct{ kind, metadata, want string }{
		"valid":                 {"ConfigMap", `annotations: {kubesync.io/prune: "false", kubesync.io/suspend: "true", kubesync.io/recreate: "true", kubesync.io/adopt: helm}`, ""},
		"not true or false":     {"ConfigMap", `annotations: {kubesync.io/prune: "no"}`, `annotation kubesync.io/prune is "no": "true" and "false" are accepted`},
		"null":                  {"ConfigMap", `annotations: {kubesync.io/recreate: null}`, `annotation kubesync.io/recreate is "": "true" and "false" are accepted`},
		"null beside others":    {"ConfigMap", `annotations: {a: null, kubesync.io/suspend: "yes"}`, `annotation kubesync.io/suspend is "yes": "true" and "false" are accepted`},
		"wait and fail":         {"Deployment", `annotations: {kubesync.io/wait-for: "condition=Available; jsonpath={.status.replicas}=2", kubesync.io/fail-on: condition=Progressing=False}`, ""},
		"wait for a word":       {"Deployment", `annotations: {kubesync.io/wait-for: Available}`, `annotation kubesync.io/wait-for: "Available": neither condition=… nor jsonpath=…: write condition=Ready, condition=Ready=False, jsonpath={.status.phase}=Running or, for a field that only has to be there, jsonpath={.status.phase}`},
		"no path to fail on":    {"Deployment", `annotations: {kubesync.io/fail-on: "jsonpath={.status.x["}`, `annotation kubesync.io/fail-on: "jsonpath={.status.x[": no path: write it as {.status.phase} or .status.phase`},
		"a Secret to wait for":  {"Secret", `annotations: {kubesync.io/wait-for: "jsonpath={.data.token}"}`, "a Secret can have neither annotation kubesync.io/wait-for nor kubesync.io/fail-on: kubesync reads no values of Secrets; put it on the object that uses the Secret, or on the one that a controller makes it from"},
		"adopt no one":          {"ConfigMap", `annotations: {kubesync.io/adopt: " "}`, "annotation kubesync.io/adopt is empty: it wants the name of a field manager"},
		"slip":                  {"ConfigMap", `annotations: {kubesync.io/purne: "false"}`, "annotation kubesync.io/purne is not one that a manifest can have: " + known},
		"of the parent":         {"ConfigMap", `annotations: {kubesync.io/approve-prune: abc}`, "annotation kubesync.io/approve-prune is not one that a manifest can have: " + known},
		"parent":                {"ConfigMap", `labels: {applyset.kubernetes.io/id: x}`, "label applyset.kubernetes.io/id marks the parent of an apply set, which cannot be declared: kubesync keeps its own"},
		"tier of a namespace":   {"Namespace", `labels: {kubesync.io/tier: system}`, ""},
		"no tier":               {"Namespace", `labels: {kubesync.io/tier: root}`, `label kubesync.io/tier: "root" is no tier: system and application are`},
		"tier of anything else": {"ConfigMap", `labels: {kubesync.io/tier: backend}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: o\n  %s\n", test.kind, test.metadata)
			_, err := Check(objectsOf(t, text), Rules{})
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "m.yaml:1: "+test.kind+"/o: ")
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

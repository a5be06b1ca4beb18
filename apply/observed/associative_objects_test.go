package observed

import (
	"fmt"
	"maps"
	"math/rand/v2"
)

type (
	fields = map[string]any
	items  = []any
)

// draw makes objects with random keys.
type draw struct{ *rand.Rand }

// numbers returns different numbers of one to five digits, so that as text they come in
// another order.
func (d draw) numbers(n int) []int {
	seen := map[int]bool{}
	var numbers []int
	for len(numbers) < n {
		number := 1 + d.IntN([]int{9, 99, 999, 9999, 65535}[len(numbers)%5])
		if !seen[number] {
			seen[number] = true
			numbers = append(numbers, number)
		}
	}
	d.Shuffle(n, func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	return numbers
}

// list returns as many items, each made of a number.
func (d draw) list(n int, item func(number int) any) items {
	var list items
	for _, number := range d.numbers(n) {
		list = append(list, item(number))
	}
	return list
}

// names is a list of names that have a number behind them.
func (d draw) names(format string) items {
	return d.list(5, func(number int) any { return fmt.Sprintf(format, number) })
}

// named is a list of objects that have such names.
func (d draw) named(format string, rest fields) items {
	return d.list(5, func(number int) any { return with(rest, "name", fmt.Sprintf(format, number)) })
}

// with returns a copy in which one field is set.
func with(rest fields, name string, value any) fields {
	all := fields{}
	maps.Copy(all, rest)
	all[name] = value
	return all
}

// metadata has the lists that every object's metadata has.
func (d draw) metadata() fields {
	return fields{
		"finalizers": d.names("example.com/f%d"),
		"ownerReferences": d.list(4, func(number int) any {
			return fields{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": fmt.Sprintf("%d-uid", number)}
		}),
	}
}

// container has the lists of a container. Its volumes and claims are those of podSpec.
func (d draw) container(name string, volumes, claims items) fields {
	mounts, devices, uses := items{}, items{}, items{}
	for _, volume := range volumes {
		name := volume.(fields)["name"]
		if volume.(fields)["emptyDir"] != nil {
			mounts = append(mounts, fields{"name": name, "mountPath": fmt.Sprint("/", name)})
		} else {
			devices = append(devices, fields{"name": name, "devicePath": fmt.Sprint("/dev/", name)})
		}
	}
	for _, claim := range claims {
		uses = append(uses, fields{"name": claim.(fields)["name"]})
	}
	return fields{
		"name": name, "image": "image:1", "env": d.named("V%d", fields{"value": "x"}),
		"ports": d.list(6, func(number int) any {
			return fields{"containerPort": number, "protocol": []string{"TCP", "UDP", "SCTP"}[number%3]}
		}),
		"volumeMounts": mounts, "volumeDevices": devices, "resources": fields{"claims": uses},
	}
}

// podSpec has all lists of a pod that can be declared.
func (d draw) podSpec() fields {
	volumes := append(d.named("v%d", fields{"emptyDir": fields{}}), d.named("d%d", fields{"persistentVolumeClaim": fields{"claimName": "claim"}})...)
	claims := d.named("c%d", fields{"resourceClaimName": "claim"})
	container := func(format string) items {
		return d.list(3, func(number int) any { return d.container(fmt.Sprintf(format, number), volumes, claims) })
	}
	return fields{
		"restartPolicy": "Always", "containers": container("a%d"), "initContainers": container("i%d"),
		"volumes": volumes, "resourceClaims": claims, "imagePullSecrets": d.named("s%d", nil),
		"hostAliases": d.list(5, func(number int) any {
			return fields{"ip": fmt.Sprintf("10.0.%d.%d", number>>8, number&0xff), "hostnames": items{"x"}}
		}),
		"topologySpreadConstraints": d.list(4, func(number int) any {
			return fields{"maxSkew": 1, "topologyKey": fmt.Sprintf("k%d", number), "whenUnsatisfiable": []string{"DoNotSchedule", "ScheduleAnyway"}[number%2]}
		}),
		"schedulingGates": d.named("example.com/g%d", nil),
	}
}

// template is a pod's template, with a label to select it.
func (d draw) template(restart string) fields {
	metadata := d.metadata()
	metadata["labels"] = fields{"app": "x"}
	return fields{"metadata": metadata, "spec": with(d.podSpec(), "restartPolicy", restart)}
}

// webhooks is a webhook configuration's list.
func (d draw) webhooks() items {
	return d.list(5, func(number int) any {
		return fields{
			"name": fmt.Sprintf("w%d.example.com", number), "admissionReviewVersions": items{"v1"}, "sideEffects": "None", "failurePolicy": "Ignore",
			"clientConfig":    fields{"url": "https://webhook.example.com/"},
			"rules":           items{fields{"apiGroups": items{"nothing.example.com"}, "apiVersions": items{"v1"}, "operations": items{"CREATE"}, "resources": items{"x"}}},
			"matchConditions": d.named("m%d", fields{"expression": "true"}),
		}
	})
}

// policy matches nothing.
func (d draw) policy(rest fields) fields {
	return with(with(rest, "matchConditions", d.named("m%d", fields{"expression": "true"})), "matchConstraints", fields{"resourceRules": items{
		fields{"apiGroups": items{"nothing.example.com"}, "apiVersions": items{"v1"}, "operations": items{"CREATE"}, "resources": items{"x"}},
	}})
}

// objects returns an object of every built-in kind that has associative lists of its own,
// without names, by apiVersion and kind.
func (d draw) objects() map[[2]string]fields {
	selector := fields{"matchLabels": fields{"app": "x"}}
	workload := func(rest fields) fields {
		return fields{"spec": with(with(rest, "selector", selector), "template", d.template("Always"))}
	}
	cidr := fmt.Sprintf("10.%d.0.0/24", d.IntN(255))
	return map[[2]string]fields{
		{"v1", "ServiceAccount"}: {"secrets": d.named("s%d", nil)},
		{"v1", "ConfigMap"}:      {"data": fields{"a": "b"}},
		{"v1", "Node"}:           {"spec": fields{"podCIDR": cidr, "podCIDRs": items{cidr, "fd00::/64"}}},
		{"v1", "Pod"}:            {"spec": d.podSpec()},
		{"v1", "PodTemplate"}:    {"template": d.template("Always")},
		{"v1", "Service"}: {"spec": fields{"selector": fields{"app": "x"}, "ports": d.list(6, func(number int) any {
			return fields{"name": fmt.Sprintf("p%d", number), "port": number, "protocol": []string{"TCP", "UDP"}[number%2]}
		})}},
		{"v1", "ReplicationController"}: {"spec": fields{"selector": fields{"app": "x"}, "template": d.template("Always")}},
		{"apps/v1", "DaemonSet"}:        workload(nil),
		{"apps/v1", "Deployment"}:       workload(nil),
		{"apps/v1", "ReplicaSet"}:       workload(nil),
		{"apps/v1", "StatefulSet"}:      workload(fields{"serviceName": "x"}),
		{"batch/v1", "Job"}:             {"spec": fields{"template": d.template("Never")}},
		{"batch/v1", "CronJob"}: {"spec": fields{"schedule": "0 0 1 1 *", "jobTemplate": fields{
			"metadata": d.metadata(), "spec": fields{"template": d.template("OnFailure")},
		}}},
		{"resource.k8s.io/v1", "ResourceClaimTemplate"}: {"spec": fields{"spec": fields{"devices": fields{
			"requests": items{fields{"name": "x", "exactly": fields{"deviceClassName": "x"}}},
		}}}},
		{"storage.k8s.io/v1", "CSIDriver"}: {"spec": fields{"volumeLifecycleModes": items{"Persistent", "Ephemeral"}}},
		{"storage.k8s.io/v1", "CSINode"}:   {"spec": fields{"drivers": d.named("d%d.example.com", fields{"nodeID": "x"})}},

		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"}: {"webhooks": d.webhooks()},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"}:   {"webhooks": d.webhooks()},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"}: {"spec": d.policy(fields{
			"variables": d.named("v%d", fields{"expression": "1"}), "validations": items{fields{"expression": "true"}},
		})},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"}: {"spec": fields{
			"policyName": "none.example.com", "validationActions": items{"Warn", "Audit"},
		}},
		{"admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"}: {"spec": d.policy(fields{
			"reinvocationPolicy": "Never",
			"mutations":          items{fields{"patchType": "ApplyConfiguration", "applyConfiguration": fields{"expression": "Object{}"}}},
		})},
	}
}

// undeclared are the lists that are part of a kind but cannot be declared, and why.
func undeclared() map[string]string {
	return map[string]string{
		"spec.ephemeralContainers[]":                               "are written through a subresource",
		"spec.resources.claims[]":                                  "a pod as a whole may have none",
		"spec.metadata.finalizers[]":                               "may not be set",
		"spec.metadata.ownerReferences[]":                          "may not be set",
		"ephemeral.volumeClaimTemplate.metadata.finalizers[]":      "may not be set",
		"ephemeral.volumeClaimTemplate.metadata.ownerReferences[]": "may not be set",
	}
}

// gadgetDefinition defines a kind whose lists have keys of every type, and several.
func gadgetDefinition() fields {
	list := func(kind string, item fields, keys ...any) fields {
		schema := fields{"type": "array", "x-kubernetes-list-type": kind, "items": item}
		if len(keys) > 0 {
			schema["x-kubernetes-list-map-keys"] = keys
		}
		return schema
	}
	row := func(rest fields) fields {
		return fields{"type": "object", "required": items{"number", "ready", "text"}, "properties": with(with(with(with(rest,
			"number", fields{"type": "integer"}), "ready", fields{"type": "boolean"}), "text", fields{"type": "string"}), "note", fields{"type": "string"})}
	}
	keys := items{"text", "number", "ready"}
	return fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": fields{"name": "gadgets.example.com"},
		"spec": fields{
			"group": "example.com", "scope": "Namespaced", "names": fields{"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
			"versions": items{fields{"name": "v1", "served": true, "storage": true, "schema": fields{"openAPIV3Schema": fields{
				"type": "object", "properties": fields{"spec": fields{"type": "object", "properties": fields{
					"integers": list("set", fields{"type": "integer", "format": "int64"}),
					"numbers":  list("set", fields{"type": "number"}),
					"texts":    list("set", fields{"type": "string"}),
					"truths":   list("set", fields{"type": "boolean"}),
					"any":      list("set", fields{"x-kubernetes-int-or-string": true}),
					"rows":     list("map", row(fields{"rows": list("map", row(nil), keys...)}), keys...),
					"byNumber": list("map", fields{"type": "object", "required": items{"n"}, "properties": fields{"n": fields{"type": "number"}}}, "n"),
					"free":     fields{"type": "object", "additionalProperties": fields{"type": "string"}},
				}}},
			}}}},
		},
	}
}

// gadget is a custom resource with random keys of every type.
func (d draw) gadget() fields {
	text := func(number int) string {
		return []string{`say "a" %d`, `back\slash %d`, "line\nend %d", `<b>&amp; %d`, "ünï→ %d", "tab\t %d", "%d", "%d.0", "true %d", "\u2028%d"}[number%10]
	}
	texts := func(number int) any { return fmt.Sprintf(text(number), number) }
	rows := func(rest fields) items {
		return d.list(8, func(number int) any {
			return with(with(with(with(rest, "number", number), "ready", number%2 == 0), "text", texts(number/2)), "note", "x")
		})
	}
	free := fields{}
	for _, number := range d.numbers(8) {
		free[fmt.Sprintf(text(number), number)] = "x"
	}
	return fields{"apiVersion": "example.com/v1", "kind": "Gadget", "spec": fields{
		"integers": append(d.list(9, func(number int) any { return number }), -d.IntN(1000)-1, 1<<62+d.IntN(1<<40), 1<<53+1),
		"numbers":  append(d.list(9, func(number int) any { return float64(number) / 8 }), 1e21, 2.5e-7, -100, -3.5, 0.1),
		"texts":    d.list(10, texts),
		"truths":   items{true, false},
		"any":      append(d.list(6, func(number int) any { return number }), "80", "9%", "443"),
		"rows":     rows(fields{"rows": rows(nil)}),
		"byNumber": append(d.list(6, func(number int) any { return fields{"n": float64(number) / 4} }), fields{"n": 1e21}),
		"free":     free,
	}}
}

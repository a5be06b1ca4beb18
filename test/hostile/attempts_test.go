package hostile

import (
	"fmt"
	"strings"
)

// outcome is what becomes of an attempt.
type outcome string

const (
	// refused: kubesync writes nothing of the revision.
	refused outcome = "refused by kubesync"
	// denied: the object is not written, as the API server or another repo's claim has
	// it; nothing is pruned.
	denied outcome = "denied by the API server or an owner"
	// pending: the object waits for what does not come, and pruning with it.
	pending outcome = "pending for ever"
	// harmless: it is written, and reaches nothing beyond the repo's own namespaces.
	harmless outcome = "harmless"
	// open: kubesync cannot contain it, and says so in its documentation.
	open outcome = "not contained"
)

// attempt is one hostile revision.
type attempt struct {
	files map[string]string
	is    outcome
	says  []string // in the log, each a pattern
}

// one is an attempt with a single file, hostile.yaml.
func one(is outcome, manifest string, says ...string) attempt {
	return attempt{map[string]string{"hostile.yaml": manifest}, is, says}
}

// privilege is a refusal of hostile.yaml for what only the system tier may do.
func privilege(at, what string) string {
	return "^hostile.yaml:" + at + ": Unprivileged repo requires privilege: " + what
}

// configMap returns a ConfigMap.
func configMap(name, namespace string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {by: declaration}}\n", name, namespace)
}

func inShop(name string) string { return configMap(name, "shop") }

// baseline is what the hostile repo holds while it behaves.
func baseline() map[string]string {
	return map[string]string{"kept.yaml": inShop("kept"), "leaving.yaml": inShop("leaving")}
}

// setting is what is there before any repo.
const setting = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: Namespace, metadata: {name: office}}
- {apiVersion: v1, kind: Namespace, metadata: {name: vault, labels: {kubesync.io/tier: system}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: baseline, labels: {pod-security.kubernetes.io/enforce: baseline}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: treasure, namespace: vault}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: by-hand, namespace: shop, labels: {applyset.kubernetes.io/part-of: applyset-of-another-v1}}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: operator, namespace: shop}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: operator, namespace: vault}}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: rollouts.example.com}
  spec:
    group: example.com
    scope: Namespaced
    names: {kind: Rollout, plural: rollouts, singular: rollout}
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: secretives.example.com}
  spec:
    group: example.com
    scope: Namespaced
    names: {kind: Secretive, plural: secretives, singular: secretive}
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: rollouts, labels: {rbac.authorization.k8s.io/aggregate-to-admin: "true"}}
  rules: [{apiGroups: [example.com], resources: [rollouts], verbs: ["*"]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: platform}
  rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: platform}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: platform}
  subjects: [{kind: ServiceAccount, name: kubesync, namespace: kube-system}]
`

// attempts lists them by name.
func attempts() map[string]attempt {
	all := map[string]attempt{}
	for _, group := range []map[string]attempt{
		namespaces(), documents(), clusterScoped(), kubesyncsOwn(), othersObjects(), rights(), pods(), reach(),
	} {
		for name, a := range group {
			if _, twice := all[name]; twice {
				panic("two attempts are called " + name)
			}
			all[name] = a
		}
	}
	return all
}

// namespaces reach for another namespace by every spelling.
func namespaces() map[string]attempt {
	const elsewhere = "object in system namespace "
	notAllowed := func(namespace string) string {
		return "^hostile.yaml:1: ConfigMap/x: namespace " + namespace + " is not among the allowed namespaces"
	}
	invalid := `^hostile.yaml:1: ConfigMap/x: metadata.namespace `
	return map[string]attempt{
		"a system namespace by name":            one(refused, configMap("x", "kube-system"), privilege("1: ConfigMap/x", elsewhere+"kube-system")),
		"a system namespace by label":           one(refused, configMap("x", "vault"), privilege("1: ConfigMap/x", elsewhere+"vault")),
		"the public system namespace":           one(refused, configMap("x", "kube-public"), privilege("1: ConfigMap/x", elsewhere+"kube-public")),
		"another repo's namespace":              one(refused, configMap("x", "office"), notAllowed("office")),
		"the namespace default":                 one(refused, configMap("x", "default"), notAllowed("default")),
		"a namespace that is not there":         one(refused, configMap("x", "nowhere"), notAllowed("nowhere")),
		"upper case":                            one(refused, configMap("x", "KUBE-SYSTEM"), invalid),
		"white space":                           one(refused, configMap("x", `" kube-system "`), invalid),
		"a line break":                          one(refused, configMap("x", `"kube-system\n"`), invalid),
		"a zero byte":                           one(refused, configMap("x", `"kube-system\0"`), invalid),
		"a hyphen that only looks like one":     one(refused, configMap("x", `"kube\u2010system"`), invalid),
		"a letter that only looks like one":     one(refused, configMap("x", `"kube-s\u0443stem"`), invalid),
		"full-width letters":                    one(refused, configMap("x", `"\uff4bube-system"`), invalid),
		"a space of no width":                   one(refused, configMap("x", `"kube-system\u200b"`), invalid),
		"a path as the namespace":               one(refused, configMap("x", `"shop/../kube-system"`), invalid),
		"an escaped path as the namespace":      one(refused, configMap("x", `"shop%2f..%2fkube-system"`), invalid),
		"dots as the namespace":                 one(refused, configMap("x", `".."`), invalid),
		"a path as the name":                    one(refused, configMap(`"../../kube-system/configmaps/x"`, "shop"), `^hostile.yaml:1: ConfigMap/../../kube-system/configmaps/x: metadata.name .* may not contain '/'`),
		"an escaped path as the name":           one(refused, configMap(`"..%2f..%2fkube-system"`, "shop"), `metadata.name .* may not contain '%'`),
		"dots as the name":                      one(refused, configMap(`".."`, "shop"), `metadata.name ".." may not be '..'`),
		"a query as the name":                   one(denied, configMap(`"x?dryRun=All&fieldManager=y"`, "shop"), `^hostile.yaml:1: ConfigMap/shop/x\?dryRun=All&fieldManager=y failed: .*a lowercase RFC 1123 subdomain`),
		"a resource as the API version":         one(refused, "{apiVersion: v1/namespaces/kube-system, kind: ConfigMap, metadata: {name: x}}", "^hostile.yaml:1: ConfigMap/x: apiVersion .* is neither version nor group/version"),
		"a list as the namespace":               one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: [kube-system]}}", "metadata.namespace must be a string, not a list"),
		"the namespace of a List":               one(harmless, "{apiVersion: v1, kind: List, metadata: {namespace: kube-system}, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]}"),
		"generateName":                          one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: kubesync-, namespace: kube-system}}", "generateName cannot be declared"),
		"a namespace in annotations and labels": one(harmless, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, labels: {metadata.namespace: kube-system}, annotations: {kubernetes.io/metadata.namespace: kube-system}}}`),
		"kustomize's namespace": {map[string]string{
			"kustomization.yaml": "namespace: kube-system\nresources: [kept.yaml, hostile.yaml]\n", "hostile.yaml": configMap("x", "shop"),
		}, refused, []string{privilege("1: ConfigMap/x", elsewhere+"kube-system")}},
		"a patch of kustomize": {map[string]string{
			"kustomization.yaml": "resources: [kept.yaml, hostile.yaml]\npatches: [{target: {name: x}, patch: \"- {op: replace, path: /metadata/namespace, value: vault}\"}]\n", "hostile.yaml": configMap("x", "shop"),
		}, refused, []string{privilege("1: ConfigMap/x", elsewhere+"vault")}},
		"a replacement of kustomize": {map[string]string{
			"kustomization.yaml": "resources: [kept.yaml, hostile.yaml]\nreplacements: [{source: {name: x, fieldPath: data.to}, targets: [{select: {name: x}, fieldPaths: [metadata.namespace]}]}]\n",
			"hostile.yaml":       "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop}, data: {to: kube-system}}",
		}, refused, []string{privilege("1: ConfigMap/x", elsewhere+"kube-system")}},
	}
}

// documents hide an object where no one looks.
func documents() map[string]attempt {
	hidden := configMap("x", "kube-system")
	seen := func(line string) string {
		return privilege(line+": ConfigMap/x", "object in system namespace kube-system")
	}
	utf16 := "\xff\xfe"
	for _, c := range []byte(hidden) {
		utf16 += string([]byte{c, 0})
	}
	all := map[string]attempt{
		"in a List":           one(refused, "apiVersion: v1\nkind: List\nitems:\n- "+hidden, seen("4")),
		"in a List in a List": one(refused, "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - "+hidden, seen("7")),
		"in fifty Lists":      one(refused, strings.Repeat("{apiVersion: v1, kind: List, items: [", 50)+hidden+strings.Repeat("]}", 50), seen("1")),
		"in a ConfigMapList":  one(refused, "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: x, namespace: kube-system}\n", seen("4")),
		"another kind in a ConfigMapList": one(refused, "apiVersion: v1\nkind: ConfigMapList\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: x}}\n",
			privilege("4: Namespace/x", "cluster-scoped object")),
		"in a list of a kind that is none":                one(refused, "apiVersion: example.com/v1\nkind: NothingList\nitems:\n- "+hidden, seen("4")),
		"behind the end marker":                           one(refused, inShop("x")+"...\n"+configMap("x", "kube-system"), seen("3")),
		"behind a separator with a comment":               one(refused, inShop("a")+"--- # nothing\n"+hidden, seen("3")),
		"JSON after JSON":                                 one(refused, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}} {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "kube-system"}}`, seen("1")),
		"a second namespace":                              one(refused, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: shop\n  namespace: kube-system\n", "^hostile.yaml:6: duplicate key metadata.namespace"),
		"a second namespace in JSON":                      one(refused, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop", "namespace": "kube-system"}}`, "^hostile.yaml:1: duplicate key metadata.namespace"),
		"a second metadata":                               one(refused, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop}\nmetadata: {name: x, namespace: kube-system}\n", "^hostile.yaml:4: duplicate key metadata"),
		"a namespace in another case":                     one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, Namespace: kube-system, namespace: vault}}", "namespace vault"),
		"metadata in another case":                        one(refused, "{apiVersion: v1, kind: ConfigMap, Metadata: {name: x, namespace: kube-system}}", "^hostile.yaml:1: ConfigMap: metadata.name is missing"),
		"a merge key":                                     one(refused, "apiVersion: v1\nkind: ConfigMap\nx: &x {namespace: kube-system}\nmetadata:\n  <<: *x\n  name: x\n", seen("1")),
		"an alias":                                        one(refused, "apiVersion: v1\nkind: ConfigMap\ndata: {n: &n kube-system}\nmetadata: {name: x, namespace: *n}\n", seen("1")),
		"a byte order mark":                               one(refused, "\ufeff"+hidden, seen("1")),
		"UTF-16":                                          one(refused, utf16, "^hostile.yaml:1: the file is not UTF-8 text"),
		"a comment that ends with a lone carriage return": one(refused, "# nothing\r"+hidden, seen("2")),
		"a line that only some parsers see":               one(refused, "# nothing\u2028"+hidden+"---\n"+hidden, "ConfigMap/x"),
		"a tag":                                           one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: !!binary a3ViZS1zeXN0ZW0=}}", "ConfigMap/x|not valid YAML"),
		"a number as the kind":                            one(refused, "{apiVersion: v1, kind: 1, metadata: {name: x}}", "kind must be a string, not a number"),
		"a template that is not rendered":                 one(refused, "{{ if true }}\n"+hidden+"{{ end }}\n", "^hostile.yaml:1: not valid"),
		"a file of another name":                          {map[string]string{"hostile.json": strings.ReplaceAll(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "NS"}}`, "NS", "kube-system")}, refused, []string{"^hostile.json:1: ConfigMap/x: Unprivileged"}},
		"forged lines of the log":                         one(refused, "{apiVersion: v1, kind: \"ConfigMap\\nERROR\\u001b[2J forged\", metadata: {name: \"x\\n{}\", namespace: kube-system}}", "hostile.yaml:1: "),
	}
	return all
}

// clusterScoped objects are all the system tier's.
func clusterScoped() map[string]attempt {
	all := map[string]attempt{}
	for name, manifest := range map[string]string{
		"a Namespace":                        "apiVersion: v1, kind: Namespace, metadata: {name: x}",
		"Pod Security off":                   "apiVersion: v1, kind: Namespace, metadata: {name: baseline, labels: {pod-security.kubernetes.io/enforce: privileged}}",
		"a system namespace opened":          "apiVersion: v1, kind: Namespace, metadata: {name: vault, labels: {kubesync.io/tier: application}}",
		"a Namespace with a namespace":       "apiVersion: v1, kind: Namespace, metadata: {name: x, namespace: shop}",
		"a CRD":                              "apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: X, plural: xs}, versions: []}",
		"a conversion webhook":               "apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: rollouts.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Rollout, plural: rollouts}, conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com'}}}, versions: []}",
		"an APIService":                      "apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.apps}, spec: {group: apps, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: x, namespace: shop}}",
		"a ValidatingWebhookConfiguration":   "apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: x}, webhooks: []",
		"a MutatingWebhookConfiguration":     "apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: x}, webhooks: []",
		"a MutatingAdmissionPolicy":          "apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: x}, spec: {}",
		"a ValidatingAdmissionPolicyBinding": "apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: x}, spec: {}",
		"a ClusterRole":                      "apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x, labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]",
		"a ClusterRoleBinding":               "apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: kubesync-restricted}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kubesync-limited}]",
		"a PersistentVolume":                 "apiVersion: v1, kind: PersistentVolume, metadata: {name: x}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /}}",
		"a PriorityClass":                    "apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: x}, value: 1",
		"a CertificateSigningRequest":        "apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: x}, spec: {}",
		"a Node":                             "apiVersion: v1, kind: Node, metadata: {name: x}",
		"a StorageClass":                     "apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: x}, provisioner: x",
	} {
		all[name] = one(refused, "{"+manifest+"}", "^hostile.yaml:1: [A-Za-z]+/[a-z0-9.-]+: Unprivileged repo requires privilege: cluster-scoped object")
	}
	return all
}

// kubesyncsOwn are kubesync's own objects, and what steers it.
func kubesyncsOwn() map[string]attempt {
	all := map[string]attempt{
		"its RoleBinding": one(refused, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: kubesync, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kubesync-limited}]}",
			privilege("1: RoleBinding/kubesync", "the RoleBinding kubesync is kubesync's own")),
		"a forged parent": one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kubesync-platform, namespace: shop, labels: {applyset.kubernetes.io/id: applyset-x-v1}}}",
			"^hostile.yaml:1: ConfigMap/kubesync-platform: label applyset.kubernetes.io/id marks the parent of an apply set, which cannot be declared"),
		"a kind that may not be listed": one(denied, "{apiVersion: example.com/v1, kind: Secretive, metadata: {name: x, namespace: shop}}",
			`^hostile.yaml:1: Secretive/shop/x failed: .*User "kubesync-limited" cannot list`),
		"a forged parent that is a Secret":   one(refused, "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: shop, labels: {applyset.kubernetes.io/id: null}}}", "cannot be declared"),
		"a ConfigMap named like a parent":    one(harmless, configMap("kubesync-platform", "shop")),
		"a Lease named like the daemon's":    one(harmless, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kubesync-lease, namespace: shop}, spec: {holderIdentity: me, leaseDurationSeconds: 3600}}"),
		"the label of another set":           one(harmless, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, labels: {applyset.kubernetes.io/part-of: applyset-x-v1}}}"),
		"the label of another set, kept":     one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, annotations: {kubesync.io/ignore: 'metadata.annotations'}}}", "metadata.annotations cannot be left out"),
		"the writer of a RoleBinding":        one(harmless, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: shop, labels: {kubesync.io/writer: kubesync}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: default, namespace: shop}]}"),
		"managedFields of its own":           one(harmless, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, managedFields: [{manager: kubesync, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}], uid: 00000000-0000-0000-0000-000000000000, resourceVersion: '1'}}"),
		"fields left out to pass the checks": one(refused, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: shop, annotations: {kubesync.io/ignore: spec.template}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {hostNetwork: true, containers: [{name: c, image: c}]}}}}", privilege("1: Deployment/x", "its pod template cannot be checked")),
		"a path that is searched for ever":   one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, annotations: {kubesync.io/wait-for: 'jsonpath={..a..b..c}'}}}", "no .. and .*"),
		"the approval of another's pruning":  one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, annotations: {kubesync.io/approve-prune: platform}}}", "annotation kubesync.io/approve-prune is not one that a manifest can have"),
		"the deletion of a repo":             one(refused, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, annotations: {kubesync.io/delete: platform}}}", "annotation kubesync.io/delete is not one that a manifest can have"),
	}
	for name, manifest := range map[string]string{
		"its parent":           "apiVersion: v1, kind: ConfigMap, metadata: {name: kubesync-platform, namespace: kube-system}",
		"its own parent":       "apiVersion: v1, kind: ConfigMap, metadata: {name: kubesync-hostile, namespace: kube-system, annotations: {kubesync.io/prune: 'false'}}",
		"its Lease":            "apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kubesync, namespace: kube-system}",
		"its Deployment":       "apiVersion: apps/v1, kind: Deployment, metadata: {name: kubesync, namespace: kube-system}, spec: {selector: {matchLabels: {name: kubesync}}, template: {metadata: {labels: {name: kubesync}}, spec: {containers: [{name: c, image: evil}]}}}",
		"its ServiceAccount":   "apiVersion: v1, kind: ServiceAccount, metadata: {name: kubesync, namespace: kube-system}",
		"its Secret":           "apiVersion: v1, kind: Secret, metadata: {name: kubesync, namespace: kube-system}",
		"its Role":             "apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: kubesync-restricted, namespace: kube-system}, rules: []",
		"its token":            "apiVersion: v1, kind: Secret, metadata: {name: x, namespace: kube-system, annotations: {kubernetes.io/service-account.name: kubesync}}, type: kubernetes.io/service-account-token",
		"a RoleBinding beside": "apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: kube-system}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: default, namespace: shop}]",
	} {
		all[name] = one(refused, "{"+manifest+"}", "^hostile.yaml:1: [A-Za-z]+/[a-z-]+: Unprivileged repo requires privilege: object in system namespace kube-system")
	}
	return all
}

// othersObjects are in a namespace that the hostile repo may write.
func othersObjects() map[string]attempt {
	owned := func(who string) string { return "^hostile.yaml:1: ConfigMap/shop/[a-z-]+ refused: .*" + who }
	annotated := func(name, annotation string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, annotations: {%s}}}", name, annotation)
	}
	return map[string]attempt{
		"a system repo's object":               one(denied, inShop("platforms"), owned("repo platform")),
		"another repo's object":                one(denied, inShop("neighbours"), owned("repo neighbour")),
		"an object of an unknown set":          one(denied, inShop("by-hand"), owned("applyset-of-another-v1")),
		"recreating another's object":          one(denied, annotated("platforms", "kubesync.io/recreate: 'true'"), owned("repo platform")),
		"adopting another's object":            one(denied, annotated("neighbours", "kubesync.io/adopt: kubesync"), owned("repo neighbour")),
		"keeping another's object from prune":  one(denied, annotated("platforms", "kubesync.io/prune: 'false'"), owned("repo platform")),
		"suspending another's object":          one(denied, annotated("platforms", "kubesync.io/suspend: 'true'"), owned("repo platform")),
		"an owner elsewhere":                   one(harmless, ownedBy("v1", "ConfigMap", "treasure", "00000000-0000-0000-0000-000000000000")),
		"an owner that is cluster-scoped":      one(harmless, ownedBy("v1", "Namespace", "vault", "00000000-0000-0000-0000-000000000000")),
		"an owner that is kubesync's":          one(harmless, ownedBy("apps/v1", "Deployment", "kubesync", "00000000-0000-0000-0000-000000000000")),
		"a finalizer":                          one(harmless, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, finalizers: []}}"),
		"an object that no one claims yet":     one(open, inShop("claimed-first")),
		"the ServiceAccount that all pods use": one(open, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop, annotations: {x: z}, labels: {x: z}}}"),
	}
}

// ownedBy returns an object with an owner that blocks its deletion, or tries to.
func ownedBy(version, kind, name, uid string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true, blockOwnerDeletion: true}]}}", version, kind, name, uid)
}

// rights are more than the repo has.
func rights() map[string]attempt {
	binding := func(namespace, role, subject string) string {
		return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [%s]}", namespace, role, subject)
	}
	const (
		user   = "{apiGroup: rbac.authorization.k8s.io, kind: User, name: kubesync-limited}"
		cannot = `^hostile.yaml:1: \w+/shop/x failed: .*`
		grant  = cannot + "attempting to grant RBAC permissions not currently held"
		lacks  = cannot + `User "kubesync-limited" cannot `
	)
	return map[string]attempt{
		"cluster-admin in its namespace":     one(denied, binding("shop", "cluster-admin", user), grant),
		"cluster-admin in a system one":      one(refused, binding("vault", "cluster-admin", user), privilege("1: RoleBinding/x", "object in system namespace vault")),
		"the daemon's own role":              one(denied, binding("shop", "kubesync-restricted", user), grant),
		"a role of a controller":             one(denied, binding("shop", "system:controller:generic-garbage-collector", user), grant),
		"a Role with everything":             one(denied, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, namespace: shop}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}", grant),
		"a Role that escalates":              one(denied, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, namespace: shop}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate, bind]}]}", grant),
		"a Role to impersonate users":        one(denied, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, namespace: shop}, rules: [{apiGroups: [''], resources: [users, groups], verbs: [impersonate]}]}", grant),
		"a ResourceQuota":                    one(denied, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: x, namespace: shop}, spec: {hard: {pods: 999}}}", lacks),
		"a LimitRange":                       one(denied, "{apiVersion: v1, kind: LimitRange, metadata: {name: x, namespace: shop}, spec: {limits: []}}", lacks),
		"an Event":                           one(harmless, "{apiVersion: v1, kind: Event, metadata: {name: x, namespace: shop}, involvedObject: {kind: Namespace, name: vault, namespace: shop}, reason: x, message: x}"),
		"an EndpointSlice":                   one(denied, "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: x, namespace: shop, labels: {kubernetes.io/service-name: x}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}]}", lacks),
		"Endpoints":                          one(denied, "{apiVersion: v1, kind: Endpoints, metadata: {name: x, namespace: shop}, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 443}]}]}", lacks),
		"a ControllerRevision":               one(denied, "{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: x, namespace: shop}, revision: 1}", lacks),
		"a review of a user's rights":        one(refused, "{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {name: x, namespace: shop}, spec: {user: admin}}", "^hostile.yaml:1: LocalSubjectAccessReview/x: objects of kind LocalSubjectAccessReview of authorization.k8s.io/v1 cannot be declared"),
		"a Binding of a pod":                 one(refused, "{apiVersion: v1, kind: Binding, metadata: {name: x, namespace: shop}, target: {kind: Node, name: x}}", "^hostile.yaml:1: Binding/x: objects of kind Binding of v1 cannot be declared"),
		"an Eviction":                        one(pending, "{apiVersion: policy/v1, kind: Eviction, metadata: {name: x, namespace: shop}}", "hostile.yaml:1: Eviction"),
		"a Scale":                            one(pending, "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: kubesync, namespace: shop}, spec: {replicas: 0}}", "hostile.yaml:1: Scale"),
		"a TokenRequest":                     one(pending, "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: operator, namespace: shop}, spec: {audiences: [x]}}", "hostile.yaml:1: TokenRequest"),
		"a status":                           one(harmless, "{apiVersion: v1, kind: Service, metadata: {name: x, namespace: shop}, spec: {ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}"),
		"admin for a user in its own":        one(harmless, binding("shop", "admin", "{kind: ServiceAccount, name: default, namespace: shop}")),
		"admin for a user from elsewhere":    one(harmless, binding("shop", "admin", "{kind: ServiceAccount, name: default, namespace: office}")),
		"a token of an account elsewhere":    one(harmless, "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: shop, annotations: {kubernetes.io/service-account.name: kubesync}}, type: kubernetes.io/service-account-token}"),
		"a token of an account that is here": one(open, "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: shop, annotations: {kubernetes.io/service-account.name: operator}}, type: kubernetes.io/service-account-token}"),
	}
}

// pods reach for their node, through every kind that makes pods.
func pods() map[string]attempt {
	wrap := map[string]string{
		"Pod":                   "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}, spec: SPEC}",
		"PodTemplate":           "{apiVersion: v1, kind: PodTemplate, metadata: {name: x, namespace: shop}, template: {spec: SPEC}}",
		"ReplicationController": "{apiVersion: v1, kind: ReplicationController, metadata: {name: x, namespace: shop}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: SPEC}}}",
		"Job":                   "{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: shop}, spec: {template: {spec: SPEC}}}",
		"CronJob":               "{apiVersion: batch/v1, kind: CronJob, metadata: {name: x, namespace: shop}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: SPEC}}}}}",
	}
	for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet", "ReplicaSet"} {
		wrap[kind] = "{apiVersion: apps/v1, kind: " + kind + ", metadata: {name: x, namespace: shop}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: SPEC}}}"
	}
	const container = "containers: [{name: c, image: c"
	specs := map[string]struct{ spec, says string }{
		"hostPath":     {"{restartPolicy: Never, " + container + "}], volumes: [{name: v, hostPath: {path: /}}]}", "hostPath"},
		"hostNetwork":  {"{hostNetwork: true, " + container + "}]}", "hostNetwork=true"},
		"hostPID":      {"{hostPID: true, " + container + "}]}", "hostPID=true"},
		"privileged":   {"{" + container + ", securityContext: {privileged: true}}]}", "privileged"},
		"a host port":  {"{" + container + ", ports: [{containerPort: 1, hostPort: 1}]}]}", "hostPort"},
		"capabilities": {"{" + container + ", securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}", "SYS_ADMIN"},
		"init":         {"{initContainers: [{name: i, image: i, securityContext: {privileged: true}}], " + container + "}]}", "privileged"},
		"ephemeral":    {"{ephemeralContainers: [{name: i, image: i, securityContext: {privileged: true}}], " + container + "}]}", "privileged"},
		"sysctls":      {"{securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}, " + container + "}]}", "kernel.msgmax"},
		"no seccomp":   {"{securityContext: {seccompProfile: {type: Unconfined}}, " + container + "}]}", "seccomp"},
		"host process": {"{securityContext: {windowsOptions: {hostProcess: true}}, " + container + "}]}", "hostProcess"},
		"odd types":    {"{hostNetwork: [true], " + container + "}]}", "cannot be checked"},
		"no spec":      {"null", "cannot be checked"},
	}
	all := map[string]attempt{}
	for kind, manifest := range wrap {
		says := privilege("1: "+kind+"/x", ".*hostPath")
		all["hostPath in a "+kind] = one(refused, strings.ReplaceAll(manifest, "SPEC", specs["hostPath"].spec), says)
	}
	for name, pod := range specs {
		if name != "hostPath" {
			all["pod: "+name] = one(refused, strings.ReplaceAll(wrap["Deployment"], "SPEC", pod.spec), privilege("1: Deployment/x", ".*"+pod.says))
		}
	}
	rollout := "{apiVersion: example.com/v1, kind: Rollout, metadata: {name: x, namespace: shop}, spec: {template: {spec: " + specs["hostPath"].spec + "}}}"
	all["hostPath in a kind that no one knows"] = one(open, rollout)
	const account = "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}, spec: {serviceAccountName: operator, containers: [{name: c, image: c}]}}"
	all["a pod with a privileged account of the namespace"] = one(open, account)
	all["a projected token of that account"] = one(open, "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}, spec: {serviceAccountName: operator, containers: [{name: c, image: c}], volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t, audience: vault}}]}}]}}")
	all["a pod with an account from elsewhere"] = one(denied, strings.ReplaceAll(account, "operator", "kubesync"), "^hostile.yaml:1: Pod/shop/x failed: .*kubesync")
	all["a pod that goes before all others"] = one(open, "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}, spec: {priorityClassName: system-node-critical, containers: [{name: c, image: c}]}}")
	return all
}

// reach goes over the network, which is not kubesync's to guard.
func reach() map[string]attempt {
	return map[string]attempt{
		"a Service that is a name elsewhere":    one(open, "{apiVersion: v1, kind: Service, metadata: {name: x, namespace: shop}, spec: {type: ExternalName, externalName: treasure.vault.svc.cluster.local}}"),
		"a Service with the address of another": one(open, "{apiVersion: v1, kind: Service, metadata: {name: x, namespace: shop}, spec: {ports: [{port: 443}], externalIPs: [192.0.2.1]}}"),
		"an Ingress for another's host":         one(open, "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, namespace: shop}, spec: {rules: [{host: vault.example.com}]}}"),
	}
}

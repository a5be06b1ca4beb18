package main

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// set is a set of objects as it is sent to a cluster and as it stands in git: a
// directory a namespace, a file an object.
type set struct {
	objects []*unstructured.Unstructured // Namespaces first, then kind by kind
	files   map[string]string
}

// generator makes objects. What it makes depends on its seed alone.
type generator struct{ random *rand.Rand }

func newGenerator(seed uint64) *generator {
	return &generator{random: rand.New(rand.NewPCG(seed, 0))}
}

// mixed makes a set of Namespaces (20 in 1,000 objects), ServiceAccounts,
// ConfigMaps, Services and Deployments.
func mixed(seed uint64, size int) (set, error) {
	g := newGenerator(seed)
	return g.fill("team", size, max(1, size/50), g.serviceAccount, g.configMap, g.service, g.deployment)
}

// configMaps makes a set of ConfigMaps, and Namespaces for a hundred of them each.
func configMaps(seed uint64, size int) (set, error) {
	g := newGenerator(seed)
	namespaces := max(1, size/100)
	return g.fill("team", size+namespaces, namespaces, g.configMap)
}

// fill makes a set of size objects, so many of them namespaces, the others of
// the given kinds in equal parts.
func (g *generator) fill(prefix string, size, namespaces int, kinds ...func(namespace string, i int) object) (set, error) {
	s := set{files: map[string]string{}}
	name := func(i int) string { return fmt.Sprintf("%s-%03d", prefix, i%namespaces) }
	for i := range namespaces {
		if err := s.add(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name(i)}}); err != nil {
			return set{}, err
		}
	}
	rest := size - namespaces
	for k, kind := range kinds {
		for i := range rest/len(kinds) + min(1, max(0, rest%len(kinds)-k)) {
			if err := s.add(kind(name(i), i)); err != nil {
				return set{}, err
			}
		}
	}
	return s, nil
}

// object is a part of a manifest.
type object = map[string]any

// add adds an object and its file. What a decoder would make of the file is what
// peers send: numbers and so on are as they come from git.
func (s *set) add(o object) error {
	content, err := yaml.Marshal(o)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	decoded := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON(content)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if err := decoded.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	s.objects = append(s.objects, decoded)
	s.files[fileOf(decoded)] = string(content)
	return nil
}

// fileOf is where an object stands in git. A Namespace comes before what is in it,
// for kubectl, which goes by the name.
func fileOf(o *unstructured.Unstructured) string {
	if o.GetKind() == "Namespace" {
		return path.Join("kubernetes", o.GetName(), "00-namespace.yaml")
	}
	return path.Join("kubernetes", o.GetNamespace(), strings.ToLower(o.GetKind())+"-"+o.GetName()+".yaml")
}

// kinds counts the objects of each kind.
func (s set) kinds() map[schema.GroupVersionKind]int {
	counts := map[schema.GroupVersionKind]int{}
	for _, o := range s.objects {
		counts[o.GroupVersionKind()]++
	}
	return counts
}

// choose picks n different ConfigMaps of a set.
func (g *generator) choose(s set, n int) []*unstructured.Unstructured {
	var maps []*unstructured.Unstructured
	for _, o := range s.objects {
		if o.GetKind() == "ConfigMap" {
			maps = append(maps, o)
		}
	}
	g.random.Shuffle(len(maps), func(i, j int) { maps[i], maps[j] = maps[j], maps[i] })
	return maps[:min(n, len(maps))]
}

// word makes up something to put into a manifest.
func (g *generator) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	b := make([]byte, 6+g.random.IntN(8))
	for i := range b {
		b[i] = letters[g.random.IntN(len(letters))]
	}
	return string(b)
}

func (g *generator) metadata(namespace, name string) object {
	return object{
		"name": name, "namespace": namespace,
		"labels":      object{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench", "team": namespace},
		"annotations": object{"example.com/contact": g.word() + "@example.com"},
	}
}

func (g *generator) configMap(namespace string, i int) object {
	var lines strings.Builder
	for range 4 {
		fmt.Fprintf(&lines, "%s=%s\n", g.word(), g.word())
	}
	return object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": g.metadata(namespace, fmt.Sprintf("settings-%05d", i)),
		"data": object{"LOG_LEVEL": "info", "greeting": g.word(), "server.properties": lines.String()},
	}
}

func (g *generator) serviceAccount(namespace string, i int) object {
	return object{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": g.metadata(namespace, fmt.Sprintf("account-%05d", i)),
		"automountServiceAccountToken": false,
	}
}

func (g *generator) service(namespace string, i int) object {
	name := fmt.Sprintf("service-%05d", i)
	return object{
		"apiVersion": "v1", "kind": "Service", "metadata": g.metadata(namespace, name),
		"spec": object{
			"selector": object{"app.kubernetes.io/name": fmt.Sprintf("web-%05d", i)},
			"ports":    []any{object{"name": "http", "port": 80, "targetPort": "http"}, object{"name": "metrics", "port": 9090}},
		},
	}
}

func (g *generator) deployment(namespace string, i int) object {
	name := fmt.Sprintf("web-%05d", i)
	labels := object{"app.kubernetes.io/name": name}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": g.metadata(namespace, name),
		"spec": object{
			"replicas": 1,
			"selector": object{"matchLabels": labels},
			"template": object{
				"metadata": object{"labels": labels},
				"spec": object{
					"containers": []any{object{
						"name": "web", "image": "registry.example.com/" + g.word() + ":1.2.3",
						"ports": []any{object{"name": "http", "containerPort": 8080}},
						"env": []any{
							object{"name": "LOG_LEVEL", "value": "info"},
							object{"name": "UPSTREAM", "value": "http://" + g.word() + ":8080"},
						},
						"resources":      object{"requests": object{"cpu": "100m", "memory": "64Mi"}, "limits": object{"memory": "128Mi"}},
						"readinessProbe": object{"httpGet": object{"path": "/healthz", "port": "http"}, "periodSeconds": 10},
					}},
				},
			},
		},
	}
}

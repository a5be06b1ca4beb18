package prune_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/prune"
)

func TestContents(t *testing.T) {
	t.Parallel()
	owned := func(c prune.Content, owners ...prune.Owner) prune.Content {
		c.Owners = owners
		return c
	}
	inside := func(uid string) prune.Owner { return prune.Owner{UID: types.UID(uid), Inside: true} }
	elsewhere := func(uid string) prune.Owner { return prune.Owner{UID: types.UID(uid)} }
	deployment := prune.Content{UID: "deploy", Name: "Deployment/ns/web"}
	replicas := owned(prune.Content{UID: "rs", Name: "ReplicaSet/ns/web-1"}, inside("deploy"))
	pod := owned(prune.Content{UID: "pod", Name: "Pod/ns/web-1-a"}, inside("rs"))
	claim := prune.Content{UID: "pvc", Name: "PersistentVolumeClaim/ns/data", Claim: true}
	usual := prune.Content{UID: "sa", Name: "ServiceAccount/ns/default", Usual: true}
	mine := prune.Content{UID: "cm", Name: "ConfigMap/ns/mine", Own: true}
	gone := deployment
	gone.Going = true
	for name, test := range map[string]struct {
		held         []prune.Content
		own, foreign []string
	}{
		"nothing":                            {nil, nil, nil},
		"what every Namespace has":           {[]prune.Content{usual}, nil, nil},
		"another's":                          {[]prune.Content{deployment}, nil, []string{"Deployment/ns/web"}},
		"another's, with what it owns":       {[]prune.Content{pod, replicas, deployment}, nil, []string{"Pod/ns/web-1-a", "ReplicaSet/ns/web-1", "Deployment/ns/web"}},
		"what a deleted one owned":           {[]prune.Content{pod, replicas}, nil, nil},
		"what one that is going owns":        {[]prune.Content{gone, pod, replicas}, nil, nil},
		"only the pods are left":             {[]prune.Content{pod}, nil, nil},
		"a claim of what was deleted":        {[]prune.Content{owned(claim, inside("deploy"))}, nil, []string{"PersistentVolumeClaim/ns/data"}},
		"a claim with an owner elsewhere":    {[]prune.Content{owned(claim, elsewhere("node"))}, nil, []string{"PersistentVolumeClaim/ns/data"}},
		"a claim that would be usual":        {[]prune.Content{{UID: "x", Name: "x", Claim: true, Usual: true}}, nil, []string{"x"}},
		"an owner elsewhere":                 {[]prune.Content{owned(pod, elsewhere("node"))}, nil, []string{"Pod/ns/web-1-a"}},
		"one owner here, one elsewhere":      {[]prune.Content{owned(pod, inside("rs"), elsewhere("node"))}, nil, []string{"Pod/ns/web-1-a"}},
		"owners in a circle":                 {[]prune.Content{owned(deployment, inside("rs")), owned(replicas, inside("deploy"))}, nil, []string{"Deployment/ns/web", "ReplicaSet/ns/web-1"}},
		"its own owner":                      {[]prune.Content{owned(deployment, inside("deploy"))}, nil, []string{"Deployment/ns/web"}},
		"what is ours and stays":             {[]prune.Content{mine}, []string{"ConfigMap/ns/mine"}, nil},
		"what belongs to ours, which stays":  {[]prune.Content{mine, owned(pod, inside("cm"))}, []string{"ConfigMap/ns/mine"}, []string{"Pod/ns/web-1-a"}},
		"what belongs to the usual":          {[]prune.Content{usual, owned(pod, inside("sa"))}, nil, nil},
		"ours that a dry run deletes":        {[]prune.Content{{UID: "cm", Name: "x", Own: true, Going: true}}, nil, nil},
		"a claim that a dry run deletes":     {[]prune.Content{{UID: "pvc", Name: "x", Claim: true, Going: true}}, nil, nil},
		"what belongs to a claim that stays": {[]prune.Content{claim, owned(pod, inside("pvc"))}, nil, []string{"PersistentVolumeClaim/ns/data", "Pod/ns/web-1-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, foreign := prune.Contents(test.held)
			if !slices.Equal(own, test.own) || !slices.Equal(foreign, test.foreign) {
				t.Errorf("ours %q, others' %q; want %q, %q", own, foreign, test.own, test.foreign)
			}
		})
	}
}

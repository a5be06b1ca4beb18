package manifest

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Tier is how far a repo is trusted.
type Tier int

const (
	System      Tier = iota // everything, as the daemon itself
	Application             // only what cannot reach beyond its namespaces
)

// String returns "system" or "application".
func (t Tier) String() string {
	if t == Application {
		return "application"
	}
	return "system"
}

// ParseTier reads what String writes, whatever its case.
func ParseTier(text string) (Tier, error) {
	for _, tier := range []Tier{System, Application} {
		if strings.EqualFold(strings.TrimSpace(text), tier.String()) {
			return tier, nil
		}
	}
	return System, fmt.Errorf("%q is no tier: system and application are", text)
}

// BindingName is the RoleBinding that lets application repos write in a namespace.
// They may not declare it: a repo that could write it could give itself other rights.
const BindingName = "kubesync"

// refusal starts every message about what only a system repo may declare.
const refusal = "Unprivileged repo requires privilege: "

// asSystem says what privilege is: a system repo has it.
const asSystem = ": declare it in a system repo, or make this repo one (privileged: true in its CONFIG entry; TIER=system for REPO)"

// gate refuses what the application tier may not declare. It is a check that
// says early and clearly what is wrong: the boundary itself are the rights of
// the user that application repos are applied as, and Pod Security admission.
type gate struct {
	pods     policy.Evaluator
	baseline psa.LevelVersion
}

// newGate returns a gate with the checks of Pod Security's level baseline.
func newGate() (*gate, error) {
	pods, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, fmt.Errorf("set up the Pod Security checks: %w", err)
	}
	return &gate{pods: pods, baseline: psa.LevelVersion{Level: psa.LevelBaseline, Version: psa.LatestVersion()}}, nil
}

// object refuses an object for what it is. The scope may be unknown; hint says
// how the object got into its namespace, if the manifest does not name it.
func (g *gate) object(o draft, scope Scope, isSystem func(string) bool, hint string) []string {
	id := o.ID()
	var refusals []string
	switch {
	case scope == ScopeCluster:
		refusals = append(refusals, refusal+"cluster-scoped object"+asSystem)
	case isSystem(id.Namespace):
		refusals = append(refusals, refusal+"object in system namespace "+id.Namespace+cmp.Or(hint, asSystem))
	}
	if id.GroupKind() == (schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}) && id.Name == BindingName {
		refusals = append(refusals, refusal+"the RoleBinding "+BindingName+" is kubesync's own")
	}
	return refusals
}

// pod refuses an object for the pods it makes. It looks at what will be sent, so
// the object must be prepared.
func (g *gate) pod(o draft) []string {
	kind := o.ID().GroupKind()
	if _, hasTemplate := PodTemplatePath(kind); !hasTemplate {
		return nil
	}
	template, err := typedPodTemplate(o.Object, kind)
	if err != nil {
		return []string{fmt.Sprintf("%sits pod template cannot be checked: %v", refusal, err)}
	}
	result := policy.AggregateCheckResults(g.pods.EvaluatePod(g.baseline, &template.ObjectMeta, &template.Spec))
	if result.Allowed {
		return nil
	}
	return []string{refusal + result.ForbiddenDetail()}
}

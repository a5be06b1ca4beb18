package observed

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

// claim is an entry of managedFields.
func claim(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestSettleClaims(t *testing.T) {
	t.Parallel()
	const (
		applied     = metav1.ManagedFieldsOperationApply
		updated     = metav1.ManagedFieldsOperationUpdate
		lastApplied = `"f:metadata":{"f:annotations":{"f:` + manifest.LastAppliedAnnotation + `":{}}}`
	)
	ours := claim(kube.FieldManager, applied, "", `{"f:a":{}}`)
	tests := map[string]struct {
		others   []metav1.ManagedFieldsEntry
		had      string // what we had applied before
		claimed  bool
		managers []string // that are left beside us
		own      string   // our fields after that
	}{
		"no one": {nil, "", false, nil, `{"f:a":{}}`},
		"a person, a controller": {
			[]metav1.ManagedFieldsEntry{claim("kubectl-edit", updated, "", `{"f:b":{}}`), claim("kcm", updated, "status", `{"f:c":{}}`)},
			"", false, []string{"kubectl-edit", "kcm"}, `{"f:a":{}}`,
		},
		"a client-side applier": {
			[]metav1.ManagedFieldsEntry{claim("kubectl-of-2018", updated, "", `{"f:b":{},`+lastApplied+`}`)},
			"", true, nil, `{"f:a":{},"f:b":{},` + lastApplied + `}`,
		},
		"no one known: only what we apply is ours": {
			[]metav1.ManagedFieldsEntry{claim(firstApplyManager, updated, "", `{"f:a":{},"f:b":{}}`)},
			"", true, nil, `{"f:a":{}}`,
		},
		"no one known, of what we had applied before": {
			[]metav1.ManagedFieldsEntry{claim(firstApplyManager, updated, "", `{"f:a":{},"f:b":{},"f:theirs":{}}`)},
			`{"f:a":{},"f:b":{},"f:gone":{}}`, true, nil, `{"f:a":{},"f:b":{}}`,
		},
		"no one known, and what we had applied cannot be read": {
			[]metav1.ManagedFieldsEntry{claim(firstApplyManager, updated, "", `{"f:a":{},"f:b":{}}`)},
			`{"f:b"`, true, nil, `{"f:a":{}}`,
		},
		"no one known, and others": {
			[]metav1.ManagedFieldsEntry{claim("flux", applied, "", `{"f:b":{}}`), claim(firstApplyManager, updated, "", `{"f:b":{}}`), claim("hpa", updated, "scale", `{"f:c":{}}`)},
			"", true, []string{"flux", "hpa"}, `{"f:a":{}}`,
		},
		"both": {
			[]metav1.ManagedFieldsEntry{claim(firstApplyManager, updated, "", `{"f:b":{}}`), claim("kubectl-client-side-apply", updated, "", `{"f:c":{},`+lastApplied+`}`)},
			"", true, nil, `{"f:a":{},"f:c":{},` + lastApplied + `}`,
		},
		"a client-side applier before managedFields": {
			[]metav1.ManagedFieldsEntry{claim(firstApplyManager, updated, "", `{"f:b":{},`+lastApplied+`}`)},
			"", true, nil, `{"f:a":{},"f:b":{},` + lastApplied + `}`,
		},
		"an applier of that name": {
			[]metav1.ManagedFieldsEntry{claim(firstApplyManager, applied, "", `{"f:b":{}}`)},
			"", false, []string{firstApplyManager}, `{"f:a":{}}`,
		},
		"of a subresource": {
			[]metav1.ManagedFieldsEntry{claim(firstApplyManager, updated, "status", `{"f:b":{}}`)},
			"", false, []string{firstApplyManager}, `{"f:a":{}}`,
		},
	}
	for name, test := range tests {
		entries := append([]metav1.ManagedFieldsEntry{ours}, test.others...)
		if got := IsClaimed(entries); got != test.claimed {
			t.Errorf("%s: claimed: %v", name, got)
		}
		var had Entry
		if test.had != "" {
			had = readEntry([]byte(test.had)).entry
		}
		settled, err := settleClaims(entries, had)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if IsClaimed(settled) {
			t.Errorf("%s: still claimed", name)
		}
		if got, want := readEntry(ownFields(settled)).entry, readEntry([]byte(test.own)).entry; got != want {
			t.Errorf("%s: ours is %s, want %s", name, got.Value(), want.Value())
		}
		var managers []string
		for _, e := range settled {
			if !isOwn(e) {
				managers = append(managers, e.Manager)
			}
		}
		if !slices.Equal(managers, test.managers) {
			t.Errorf("%s: %q are left, want %q", name, managers, test.managers)
		}
		if len(entries) != 1+len(test.others) || string(ownFields(entries)) != `{"f:a":{}}` {
			t.Errorf("%s: what was given was changed", name)
		}
	}
}

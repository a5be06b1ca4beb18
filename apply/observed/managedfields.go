package observed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

// Claims are entries in managedFields by which a field that leaves git would stay in the
// object, although no writer wants it.
//
// A client-side applier's entry says what a user, or the shell script, once applied. It
// becomes ours, and the next apply removes what of it git does not declare.
//
// The entry before-first-apply says of no field who wrote it: the API server makes it at the
// first apply to an object without managedFields, for all that is in the object. Such an object
// is older than managedFields, was restored without them, or a user has cleared them; its
// fields may be an autoscaler's replicas, an injected CA, or the content that a controller
// gave a Secret. If that entry became ours, the next apply would remove all of it. So it is
// given up: what we apply is ours alone, and goes when it leaves git; the rest has no owner,
// and stays as it is.

// firstApplyManager is who the API server says has written whatever was there before the
// first apply to an object without managedFields.
const firstApplyManager = "before-first-apply"

// isFirstApply reports whether an entry is what the API server made of an object without
// managedFields.
func isFirstApply(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == firstApplyManager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
}

// isClaimed reports whether there are claims, as cheaply as every event needs it: without
// reading the fields.
func IsClaimed(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return isFirstApply(e) || e.Operation == metav1.ManagedFieldsOperationUpdate && e.FieldsV1 != nil &&
			bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:`+manifest.LastAppliedAnnotation+`"`))
	})
}

// claimsPatch returns the JSON patch that settles all claims on an object which we have
// just applied; nil if there are none. Had is what we had applied of it before. The patch
// names the version it was made for, so that no write in between is undone.
func ClaimsPatch(live metav1.Object, had Entry) ([]byte, error) {
	if !IsClaimed(live.GetManagedFields()) {
		return nil, nil
	}
	settled, err := settleClaims(live.GetManagedFields(), had)
	if err != nil {
		return nil, fmt.Errorf("read its field managers: %w", err)
	}
	if len(settled) == len(live.GetManagedFields()) {
		return nil, nil // what looked like a claim is none, and no entry went
	}
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": settled},
		// Replaced, not tested: a stale version is then a conflict, and no invalid request.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
}

// settleClaims returns the entries without claims. It leaves those that it is given alone.
func settleClaims(entries []metav1.ManagedFieldsEntry, had Entry) ([]metav1.ManagedFieldsEntry, error) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}
	object = object.DeepCopy()
	if managers := ClientSideManagers(entries); len(managers) > 0 {
		if err := csaupgrade.UpgradeManagedFields(object, sets.New(managers...), kube.FieldManager); err != nil {
			return nil, err
		}
	}
	return giveUpFirstApply(object.ManagedFields, had)
}

// clientSideManagers returns the field managers that have used client-side apply on an object.
func ClientSideManagers(entries []metav1.ManagedFieldsEntry) []string {
	lastApplied := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", manifest.LastAppliedAnnotation))
	var managers []string
	for _, e := range csaupgrade.FindFieldsOwners(entries, metav1.ManagedFieldsOperationUpdate, lastApplied) {
		managers = append(managers, e.Manager)
	}
	return managers
}

// giveUpFirstApply removes the entry of before-first-apply. What of it we had applied before
// becomes ours once more: if git no longer declares it, the next apply removes it.
func giveUpFirstApply(entries []metav1.ManagedFieldsEntry, had Entry) ([]metav1.ManagedFieldsEntry, error) {
	first := slices.IndexFunc(entries, isFirstApply)
	own := slices.IndexFunc(entries, isOwn)
	if first < 0 || own < 0 {
		return entries, nil
	}
	ours, err := FieldsOf(entries[own].FieldsV1.GetRawString())
	if err != nil {
		return nil, err
	}
	if had != (Entry{}) {
		before, err := FieldsOf(had.Value())
		if err != nil {
			before = fieldpath.NewSet() // it is not known what we had applied
		}
		whose, err := FieldsOf(entries[first].FieldsV1.GetRawString())
		if err != nil {
			return nil, err
		}
		ours = ours.Union(before.Intersection(whose))
	}
	text, err := ours.ToJSON()
	if err != nil {
		return nil, err
	}
	entries[own].FieldsV1 = metav1.NewFieldsV1(string(text))
	return slices.DeleteFunc(entries, isFirstApply), nil
}

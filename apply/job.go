package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// jobKind has objects that end: what has run is not put back when it goes, as its
// ttlSecondsAfterFinished may have removed it.
var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// jobFinished tells whether a Job is Complete or Failed.
func jobFinished(job *unstructured.Unstructured) bool {
	for _, condition := range mapsAt(job.Object, "status", "conditions") {
		if (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True" {
			return true
		}
	}
	return false
}

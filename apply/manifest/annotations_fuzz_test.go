package manifest

import (
	"strings"
	"testing"

	"github.com/kubesync/kubesync/apply/health"
)

// FuzzAnnotation reads whatever may be said by an annotation of kubesync's. The fields
// that are to be left out are never those that an object is known by.
func FuzzAnnotation(f *testing.F) {
	for _, seed := range [][2]string{
		{ignoreAnnotation, "spec.replicas, metadata.annotations.example\\.com/note"}, {ignoreAnnotation, "metadata.name"}, {ignoreAnnotation, "a..b,[],\\"},
		{PruneAnnotation, "false"}, {PruneAnnotation, "no"}, {AdoptAnnotation, " "}, {RecreateAnnotation, "true"}, {SuspendAnnotation, ""},
		{health.WaitForAnnotation, "condition=Ready; jsonpath={.status.phase}=Running"}, {health.FailOnAnnotation, "jsonpath={"}, {annotationPrefix + "x", "y"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		faults := annotationFaults(name, value)
		if len(faults) > 1+strings.Count(value, ",") {
			t.Errorf("%d faults of %q", len(faults), value)
		}
		switch name {
		case PruneAnnotation, SuspendAnnotation, RecreateAnnotation:
			if (len(faults) == 0) != (value == "true" || value == "false") {
				t.Errorf("%s: %q: %v", name, value, faults)
			}
		}
		paths, _ := ignoredFields(value)
		for _, path := range paths {
			if len(path) == 0 || isIdentity(path) || strings.Join(path, "") == "" {
				t.Errorf("%q leaves out %q", value, path)
			}
		}
	})
}

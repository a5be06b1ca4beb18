package apply

import (
	"testing"
	"testing/fstest"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/limits"
)

// objectsOf reads manifests that must be valid as such.
func objectsOf(t testing.TB, text string) []manifest.Object {
	t.Helper()
	loaded, err := manifest.NewLoader(limits.Limits{}).Load(fstest.MapFS{"m.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Objects
}

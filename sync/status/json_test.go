package status

import (
	"encoding/json"
	"strings"
	"testing"
)

// jsonOf returns values as the API shows them.
func jsonOf(t *testing.T, values ...any) string {
	t.Helper()
	var text strings.Builder
	for _, value := range values {
		body, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(body)
	}
	return text.String()
}

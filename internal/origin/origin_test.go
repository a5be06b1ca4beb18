package origin

import (
	"net/url"
	"testing"
)

// TestSame holds what leads to another server against what only looks so, and the reverse.
func TestSame(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ours, other string
		same        bool
	}{
		"same":               {"https://example.com/a", "https://example.com/b", true},
		"case":               {"https://example.com/a", "https://EXAMPLE.com/a", true},
		"port spelled out":   {"https://example.com/a", "https://example.com:443/a", true},
		"zeroes in the port": {"http://example.com:80/a", "http://example.com:0080/a", true},
		"other port":         {"https://example.com/a", "https://example.com:8443/a", false},
		"other host":         {"https://example.com/a", "https://example.org/a", false},
		"host below":         {"https://example.com/a", "https://git.example.com/a", false},
		"Kelvin sign":        {"https://k.example.com/a", "https://\u212a.example.com/a", false},
		"trailing dot":       {"https://example.com/a", "https://example.com./a", false},
		"upgrade":            {"http://example.com/a", "https://example.com/a", false},
		"downgrade":          {"https://example.com/a", "http://example.com/a", false},
		"same port, http":    {"https://example.com/a", "http://example.com:443/a", false},
	} {
		ours, err := url.Parse(test.ours)
		if err != nil {
			t.Fatal(err)
		}
		other, err := url.Parse(test.other)
		if err != nil {
			t.Fatal(err)
		}
		if got := Same(ours, other); got != test.same {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

package printable

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, text, line string }{
		"plain":        {"Grüße, 世界\u3000\u00a0!", "Grüße, 世界\u3000\u00a0!", "Grüße, 世界\u3000\u00a0!"},
		"escape":       {"\x1b[31mred", "\ufffd[31mred", "\ufffd[31mred"},
		"C1":           {"a\u009b31mb", "a\ufffd31mb", "a\ufffd31mb"},
		"lines":        {"a\n\tb\r", "a\n\tb\ufffd", "a  b\ufffd"},
		"other breaks": {"a\u2028b\u2029c\u0085d", "a\ufffdb\ufffdc\ufffdd", "a\ufffdb\ufffdc\ufffdd"},
		"direction":    {"a\u202eb\u2066c", "a\ufffdb\ufffdc", "a\ufffdb\ufffdc"},
		"no UTF-8":     {"caf\xe9", "caf\ufffd", "caf\ufffd"},
	} {
		if got := Text(c.given); got != c.text {
			t.Errorf("%s: text %q, want %q", name, got, c.text)
		}
		if got := Line(c.given); got != c.line {
			t.Errorf("%s: line %q, want %q", name, got, c.line)
		}
	}
}

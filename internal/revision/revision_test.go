package revision_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/internal/revision"
)

func TestHasTrailer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message string
		want    bool
	}{
		"last paragraph":    {"Drop the old shop\n\nWhy.\n\nKubesync-Prune: approved\n", true},
		"among others":      {"Drop\n\nSigned-off-by: A <a@example>\nkubesync-prune: Approved\n", true},
		"windows lines":     {"Drop\r\n\r\nKubesync-Prune: approved\r\n", true},
		"subject only":      {"Kubesync-Prune: approved", false},
		"not the last":      {"Drop\n\nKubesync-Prune: approved\n\nOn second thought, no.\n", false},
		"another value":     {"Drop\n\nKubesync-Prune: later\n", false},
		"quoted in a text":  {"Drop\n\nWithout \"Kubesync-Prune: approved\" nothing goes.\n", false},
		"empty":             {"", false},
		"longer key":        {"Drop\n\nNo-Kubesync-Prune: approved\n", false},
		"several approvals": {"Drop\n\nKubesync-Prune: no\nKubesync-Prune: approved\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (revision.Revision{Message: test.message}).HasTrailer("Kubesync-Prune", "approved"); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// FuzzTrailer reads whatever may be a commit message. One without the words approves
// nothing.
func FuzzTrailer(f *testing.F) {
	for _, seed := range []string{"a\n\nKubesync-Prune: approved\n", "Kubesync-Prune: approved", "a\n\nb\n\nkubesync-prune : Approved \r\n", "a\n\nKubesync-Prune: approved\n\nb", "\n\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if !(revision.Revision{Message: message}).HasTrailer("Kubesync-Prune", "approved") {
			return
		}
		if folded := strings.ToLower(message); !strings.Contains(folded, "kubesync-prune") || !strings.Contains(folded, "approved") {
			t.Errorf("approved by %q", message)
		}
		if (revision.Revision{Message: message + "\n\nmore"}).HasTrailer("Kubesync-Prune", "approved") {
			t.Errorf("approved by what is not at the end: %q", message)
		}
	})
}

func TestRevisionShort(t *testing.T) {
	t.Parallel()
	for full, want := range map[string]string{
		"0123456789" + strings.Repeat("0", 30): "0123456",
		"worktree-0123456789":                  "worktree-0123456",
		"":                                     "",
	} {
		if got := (revision.Revision{ID: full}).Short(); got != want {
			t.Errorf("%q: got %q", full, got)
		}
	}
}

// The JSON of a revision is part of the API.
func TestJSON(t *testing.T) {
	t.Parallel()
	r := revision.Revision{ID: "0123456789", Subject: "First", Message: "First\n\nwhy"}
	got, err := json.Marshal(r)
	if want := `{"id":"0123456789","short":"0123456","subject":"First"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	var again revision.Revision
	if err := json.Unmarshal(got, &again); err != nil || again.ID != r.ID || again.Subject != r.Subject {
		t.Errorf("got %+v, %v", again, err)
	}
}

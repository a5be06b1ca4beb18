package apply

import (
	"errors"
	"testing"
)

// A thousand objects of another set are one question, unless there was no answer.
func TestAForeignObjectIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	asked, down := 0, errors.New("down")
	look := func() (owner, error) {
		if asked++; asked == 1 {
			return owner{}, down
		}
		return owner{parent: "default/theirs"}, nil
	}
	known := &owners{}
	if _, err := known.find("theirs", look); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if found, err := known.find("theirs", look); err != nil || found.parent != "default/theirs" {
			t.Errorf("got %+v, %v", found, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

package refs

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// id makes a hash of a digit.
func id(digit string) plumbing.Hash { return plumbing.NewHash(digit + strings.Repeat("0", 39)) }

func TestHistoryCompleted(t *testing.T) {
	t.Parallel()
	// 3 -> 2 -> 1, 4 -> 2
	fetched := History{Tips: []plumbing.Hash{id("3")}, Commits: map[plumbing.Hash]Past{
		id("3"): {Parents: []plumbing.Hash{id("2")}, Committed: 3},
	}}
	older := History{Tips: []plumbing.Hash{id("4")}, Commits: map[plumbing.Hash]Past{
		id("4"): {Parents: []plumbing.Hash{id("2")}, Committed: 4},
		id("2"): {Parents: []plumbing.Hash{id("1")}, Committed: 2},
		id("1"): {Committed: 1},
	}}
	got, err := fetched.Completed(older, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Commits) != 3 || got.Commits[id("2")].Committed != 2 {
		t.Errorf("what only the older tip had should be gone: %v", got.Commits)
	}
	_, err = fetched.Completed(History{}, nil)
	if err == nil || !strings.Contains(err.Error(), id("2").String()+" is missing") {
		t.Error(err)
	}
	got, err = fetched.Completed(History{}, map[plumbing.Hash]bool{id("3"): true})
	if err != nil || len(got.Commits) != 1 {
		t.Errorf("cut off behind 3: got %v, %v", got.Commits, err)
	}
	fetched.Tips = append(fetched.Tips, id("f"))
	got, err = fetched.Completed(older, nil)
	if err != nil || len(got.Tips) != 1 {
		t.Errorf("a tip that is no commit: got %v, %v", got.Tips, err)
	}
}

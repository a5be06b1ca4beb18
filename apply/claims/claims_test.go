package claims

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kubesync/kubesync/apply/manifest"
)

// id is an object.
func id(name string) manifest.ID {
	return manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: name}
}

// set makes a set of objects of a word, one of each letter.
func set(letters string) map[manifest.ID]bool {
	objects := map[manifest.ID]bool{}
	for _, letter := range letters {
		objects[id(string(letter))] = true
	}
	return objects
}

// words writes what is taken as "object:holder", sorted.
func words(taken map[manifest.ID]string) []string {
	var texts []string
	for object, holder := range taken {
		texts = append(texts, object.Name+":"+holder)
	}
	slices.Sort(texts)
	return texts
}

// nothing is had.
func nothing(manifest.ID) bool { return false }

func TestDeclare(t *testing.T) {
	t.Parallel()
	type step struct {
		repo, declares, has string
		taken, heirs        []string
	}
	tests := map[string][]step{
		"the first holds it":                           {{"one", "ab", "", nil, nil}, {"two", "bc", "", []string{"b:one"}, nil}},
		"whichever has it holds it":                    {{"one", "ab", "", nil, nil}, {"two", "b", "b", nil, nil}, {"one", "ab", "a", []string{"b:two"}, nil}},
		"who lets it go has an heir":                   {{"one", "ab", "", nil, nil}, {"two", "b", "", []string{"b:one"}, nil}, {"one", "a", "", nil, []string{"two"}}},
		"of several the one that came first":           {{"one", "a", "", nil, nil}, {"two", "a", "", []string{"a:one"}, nil}, {"three", "a", "", []string{"a:one"}, nil}, {"one", "", "", nil, []string{"two"}}, {"three", "a", "", []string{"a:two"}, nil}},
		"who waited and ceases to leaves no heir":      {{"one", "a", "", nil, nil}, {"two", "a", "", []string{"a:one"}, nil}, {"two", "", "", nil, nil}, {"one", "", "", nil, nil}},
		"declared again it is the same":                {{"one", "a", "", nil, nil}, {"one", "a", "", nil, nil}, {"two", "a", "", []string{"a:one"}, nil}, {"two", "a", "", []string{"a:one"}, nil}},
		"many heirs, each named once":                  {{"one", "abc", "", nil, nil}, {"two", "ab", "", []string{"a:one", "b:one"}, nil}, {"three", "c", "", []string{"c:one"}, nil}, {"one", "", "", nil, []string{"three", "two"}}},
		"what is had goes before a repo that declares": {{"one", "a", "", nil, nil}, {"two", "a", "", []string{"a:one"}, nil}, {"two", "a", "a", nil, nil}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := NewTable()
			for i, s := range steps {
				has := set(s.has)
				taken, heirs := table.Declare(s.repo, set(s.declares), func(id manifest.ID) bool { return has[id] })
				if !slices.Equal(words(taken), s.taken) || !slices.Equal(heirs, s.heirs) {
					t.Errorf("step %d: taken %v, want %v; heirs %v, want %v", i, words(taken), s.taken, heirs, s.heirs)
				}
			}
		})
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	table := NewTable()
	table.Declare("one", set("ab"), nothing)
	table.Declare("two", set("b"), nothing)
	table.Read("one", time.Unix(5, 0))
	table.Forget("one")
	if holder, held := table.Holder(id("b")); holder != "two" || !held {
		t.Errorf("b is held by %q", holder)
	}
	if holder, held := table.Holder(id("a")); held {
		t.Errorf("a is held by %q", holder)
	}
	if missing, _ := table.Unread([]string{"one"}, time.Time{}); len(missing) != 1 {
		t.Error("a repo that ended counts as read")
	}
}

func TestUnread(t *testing.T) {
	t.Parallel()
	table := NewTable()
	repos := []string{"one", "two"}
	start := time.Unix(100, 0)
	missing, change := table.Unread(repos, start)
	if !slices.Equal(missing, repos) {
		t.Errorf("at first %v are unread", missing)
	}
	table.Read("one", start)
	select {
	case <-change:
	default:
		t.Error("the channel is open after a repo was read")
	}
	if missing, _ = table.Unread(repos, start); !slices.Equal(missing, repos) {
		t.Errorf("a poll that began at that very moment may have come before it: %v are unread", missing)
	}
	table.Read("one", start.Add(time.Second))
	if missing, _ = table.Unread(repos, start); !slices.Equal(missing, []string{"two"}) {
		t.Errorf("%v are unread", missing)
	}
	if missing, _ = table.Unread(repos, time.Time{}); !slices.Equal(missing, []string{"two"}) {
		t.Errorf("since the start %v are unread", missing)
	}
}

// TestWalk holds the table, over many declarations, against what can be said of each object by
// looking at all repos: one repo holds what any declares, and it is one that declares it.
func TestWalk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random, table := rand.New(rand.NewPCG(seed, 1)), NewTable()
		declared := map[string]map[manifest.ID]bool{}
		holders := map[manifest.ID]string{}
		for range 200 {
			repo := fmt.Sprintf("repo-%d", random.IntN(4))
			objects := map[manifest.ID]bool{}
			for range random.IntN(6) {
				objects[id(fmt.Sprintf("o%d", random.IntN(8)))] = true
			}
			if random.IntN(8) == 0 {
				table.Forget(repo)
				delete(declared, repo)
			} else {
				taken, heirs := table.Declare(repo, objects, func(id manifest.ID) bool { return holders[id] == repo })
				declared[repo] = objects
				for object, holder := range taken {
					if holder == repo || !declared[holder][object] {
						t.Fatalf("seed %d: %s is said to be held by %s", seed, object.Name, holder)
					}
				}
				if slices.Contains(heirs, repo) {
					t.Fatalf("seed %d: %s is its own heir", seed, repo)
				}
			}
			holders = map[manifest.ID]string{}
			for n := range 8 {
				object := id(fmt.Sprintf("o%d", n))
				holder, held := table.Holder(object)
				wanted := slices.ContainsFunc(slices.Collect(maps.Values(declared)), func(d map[manifest.ID]bool) bool { return d[object] })
				if held != wanted || held && !declared[holder][object] {
					t.Fatalf("seed %d: %s is held by %q, which declares it: %t", seed, object.Name, holder, declared[holder][object])
				}
				if held {
					holders[object] = holder
				}
			}
		}
	}
}

package follow

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// grouped returns a store that keeps an object's group: its label set.
func grouped() *Store[string, string] {
	reduce := func(o metav1.Object) (string, string) { return o.GetName(), o.GetLabels()["set"] }
	return NewStore("things", reduce, func(string, metav1.Object) {}).Grouped(func(set string) string { return set })
}

// member makes the metadata of an object of a group.
func member(name, version, set string) metav1.Object {
	o := object(name, "uid-of-"+name, version)
	o.Labels = map[string]string{"set": set}
	return o
}

// names returns what a store keeps of a group.
func names(s *Store[string, string], group string) map[string]bool {
	found := map[string]bool{}
	s.EachOf(group, func(name, _ string) { found[name] = true })
	return found
}

func TestGroups(t *testing.T) {
	t.Parallel()
	type groups map[string]map[string]bool
	tests := map[string]struct {
		do   func(*Store[string, string])
		want groups
	}{
		"seen and put": {
			do: func(s *Store[string, string]) {
				s.Seen(member("a", "1", "x"))
				s.Put(member("b", "2", "x"))
				s.Seen(member("c", "3", "y"))
			},
			want: groups{"x": {"a": true, "b": true}, "y": {"c": true}},
		},
		"an object changes its group": {
			do:   func(s *Store[string, string]) { s.Seen(member("a", "1", "x")); s.Seen(member("a", "2", "y")) },
			want: groups{"y": {"a": true}},
		},
		"an answer to a write changes the group": {
			do:   func(s *Store[string, string]) { s.Seen(member("a", "1", "x")); s.Put(member("a", "2", "y")) },
			want: groups{"y": {"a": true}},
		},
		"an older answer changes nothing": {
			do:   func(s *Store[string, string]) { s.Seen(member("a", "2", "x")); s.Put(member("a", "1", "y")) },
			want: groups{"x": {"a": true}},
		},
		"what is seen goes before what an answer said of the same version": {
			do:   func(s *Store[string, string]) { s.Put(member("a", "1", "x")); s.Seen(member("a", "1", "y")) },
			want: groups{"y": {"a": true}},
		},
		"an object leaves all groups": {
			do:   func(s *Store[string, string]) { s.Seen(member("a", "1", "x")); s.Seen(member("a", "2", "")) },
			want: groups{},
		},
		"an object is gone": {
			do: func(s *Store[string, string]) {
				s.Seen(member("a", "1", "x"))
				s.Seen(member("b", "2", "x"))
				s.Gone(member("a", "3", "x"))
			},
			want: groups{"x": {"b": true}},
		},
		"an object is gone with another group than was known": {
			do:   func(s *Store[string, string]) { s.Seen(member("a", "1", "x")); s.Gone(member("a", "3", "y")) },
			want: groups{},
		},
		"a list does not have it": {
			do: func(s *Store[string, string]) {
				s.Seen(member("a", "1", "x"))
				s.Seen(member("b", "2", "x"))
				s.Relist()
				s.Seen(member("b", "2", "x"))
				s.Current("3")
			},
			want: groups{"x": {"b": true}},
		},
		"a list has it in another group": {
			do: func(s *Store[string, string]) {
				s.Seen(member("a", "1", "x"))
				s.Relist()
				s.Seen(member("a", "2", "y"))
				s.Current("3")
			},
			want: groups{"y": {"a": true}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := grouped()
			test.do(s)
			for _, group := range []string{"", "x", "y"} {
				if got := names(s, group); !maps.Equal(got, test.want[group]) {
					t.Errorf("group %q has %v, want %v", group, got, test.want[group])
				}
			}
			if len(s.groups) != len(test.want) {
				t.Errorf("%d groups are kept, want %d", len(s.groups), len(test.want))
			}
		})
	}
}

// TestGroupsAgree walks at random, and has the groups hold what a look at everything
// would find.
func TestGroupsAgree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	s := grouped()
	for version := range 5000 {
		o := member(strconv.Itoa(random.IntN(20)), strconv.Itoa(version+1), []string{"", "x", "y", "z"}[random.IntN(4)])
		switch random.IntN(10) {
		case 0, 1:
			s.Gone(o)
		case 2:
			s.Relist()
		case 3:
			s.Current(strconv.Itoa(version + 1))
		case 4, 5, 6:
			s.Put(o)
		default:
			s.Seen(o)
		}
		want := map[string]map[string]bool{"x": {}, "y": {}, "z": {}}
		s.Each(func(name, group string) {
			if group != "" {
				want[group][name] = true
			}
		})
		for group, expected := range want {
			if got := names(s, group); !maps.Equal(got, expected) {
				t.Fatalf("after %d steps group %s has %v, want %v", version+1, group, got, expected)
			}
		}
	}
}

// TestChangedSince has every change between two counts known by object, or says that not all
// are.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	s := grouped().Ignoring(func(a, b string) bool { return a == b })
	content := func() map[string]string {
		all := map[string]string{}
		s.Each(func(name, group string) { all[name] = group })
		return all
	}
	known, unknown := 0, 0
	for version := 1; version < 20_000; {
		before, counts := content(), map[string]uint64{"x": s.Changes("x"), "y": s.Changes("y")}
		for range random.IntN(3 * maxRecent) {
			version++
			o := member(strconv.Itoa(random.IntN(1000)), strconv.Itoa(version), []string{"x", "y"}[random.IntN(2)])
			switch random.IntN(5) {
			case 0:
				s.Gone(o)
			case 1:
				s.Put(o)
			default:
				s.Seen(o)
			}
		}
		if random.IntN(10) == 0 {
			version++
			s.Relist()
			s.Current(strconv.Itoa(version)) // without anything
		}
		changed := map[string]bool{}
		all := true
		for group, count := range counts {
			keys, is := s.ChangedSince(group, count)
			all = all && is
			for _, key := range keys {
				changed[key] = true
			}
		}
		if !all {
			unknown++
			continue
		}
		known++
		now := content()
		for _, names := range []map[string]string{before, now} {
			for name := range names {
				if before[name] != now[name] && !changed[name] {
					t.Fatalf("%s was in %q, is in %q, and is not among what has changed", name, before[name], now[name])
				}
			}
		}
	}
	if known == 0 || unknown == 0 {
		t.Errorf("known %d times, unknown %d times", known, unknown)
	}
	if _, known := s.ChangedSince("x", s.Changes("x")+1); known {
		t.Error("what changes later is known")
	}
}

// TestChanges counts, by group, what changes what is kept, and nothing else.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := grouped().Ignoring(func(a, b string) bool { return a == b })
	var last [2]uint64
	step := func(what string, x, y bool, do func()) {
		t.Helper()
		do()
		now := [2]uint64{s.Changes("x"), s.Changes("y")}
		if (now[0] != last[0]) != x || (now[1] != last[1]) != y {
			t.Errorf("%s: from %v to %v, want x changed: %t, y changed: %t", what, last, now, x, y)
		}
		last = now
	}
	step("an object comes", true, false, func() { s.Seen(member("a", "1", "x")) })
	step("the same comes again", false, false, func() { s.Seen(member("a", "1", "x")) })
	step("a version with nothing that counts", false, false, func() { s.Seen(member("a", "2", "x")) })
	step("it changes its group", true, true, func() { s.Seen(member("a", "3", "y")) })
	step("an answer that is older", false, false, func() { s.Put(member("a", "1", "x")) })
	step("an answer that is newer", true, true, func() { s.Put(member("a", "4", "x")) })
	step("it is gone", true, false, func() { s.Gone(member("a", "5", "x")) })
	step("it is gone again", false, false, func() { s.Gone(member("a", "5", "x")) })
	step("another comes", false, true, func() { s.Seen(member("b", "6", "y")) })
	step("a list without it", false, true, func() { s.Relist(); s.Current("9") })
}

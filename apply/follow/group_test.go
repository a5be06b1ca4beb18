package follow

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// grouped returns a shelf that keeps an object's group: its label set.
func grouped() *Shelf[string, string] {
	reduce := func(o metav1.Object) (string, string) { return o.GetName(), o.GetLabels()["set"] }
	return NewShelf("things", reduce, func(string, metav1.Object) {}).Grouped(func(set string) string { return set })
}

// member makes the metadata of an object of a group.
func member(name, version, set string) metav1.Object {
	o := object(name, "uid-of-"+name, version)
	o.Labels = map[string]string{"set": set}
	return o
}

// names returns what a shelf keeps of a group.
func names(s *Shelf[string, string], group string) map[string]bool {
	found := map[string]bool{}
	s.EachOf(group, func(name, _ string) { found[name] = true })
	return found
}

func TestGroups(t *testing.T) {
	t.Parallel()
	type groups map[string]map[string]bool
	tests := map[string]struct {
		do   func(*Shelf[string, string])
		want groups
	}{
		"seen and put": {
			do: func(s *Shelf[string, string]) {
				s.Seen(member("a", "1", "x"))
				s.Put(member("b", "2", "x"))
				s.Seen(member("c", "3", "y"))
			},
			want: groups{"x": {"a": true, "b": true}, "y": {"c": true}},
		},
		"an object changes its group": {
			do:   func(s *Shelf[string, string]) { s.Seen(member("a", "1", "x")); s.Seen(member("a", "2", "y")) },
			want: groups{"y": {"a": true}},
		},
		"an answer to a write changes the group": {
			do:   func(s *Shelf[string, string]) { s.Seen(member("a", "1", "x")); s.Put(member("a", "2", "y")) },
			want: groups{"y": {"a": true}},
		},
		"an older answer changes nothing": {
			do:   func(s *Shelf[string, string]) { s.Seen(member("a", "2", "x")); s.Put(member("a", "1", "y")) },
			want: groups{"x": {"a": true}},
		},
		"what is seen goes before what an answer said of the same version": {
			do:   func(s *Shelf[string, string]) { s.Put(member("a", "1", "x")); s.Seen(member("a", "1", "y")) },
			want: groups{"y": {"a": true}},
		},
		"an object leaves all groups": {
			do:   func(s *Shelf[string, string]) { s.Seen(member("a", "1", "x")); s.Seen(member("a", "2", "")) },
			want: groups{},
		},
		"an object is gone": {
			do: func(s *Shelf[string, string]) {
				s.Seen(member("a", "1", "x"))
				s.Seen(member("b", "2", "x"))
				s.Gone(member("a", "3", "x"))
			},
			want: groups{"x": {"b": true}},
		},
		"an object is gone with another group than was known": {
			do:   func(s *Shelf[string, string]) { s.Seen(member("a", "1", "x")); s.Gone(member("a", "3", "y")) },
			want: groups{},
		},
		"a list does not have it": {
			do: func(s *Shelf[string, string]) {
				s.Seen(member("a", "1", "x"))
				s.Seen(member("b", "2", "x"))
				s.Relist()
				s.Seen(member("b", "2", "x"))
				s.Current("3")
			},
			want: groups{"x": {"b": true}},
		},
		"a list has it in another group": {
			do: func(s *Shelf[string, string]) {
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

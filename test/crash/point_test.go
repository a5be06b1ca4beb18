package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
)

// story returns a reference of steps with so many requests.
func story(lengths map[string]int) reference {
	r := reference{requests: map[string][]string{}}
	for step, n := range lengths {
		for i := range n {
			r.requests[step] = append(r.requests[step], fmt.Sprintf("api GET /api/v1/namespaces/a/configmaps/%d #1", i))
		}
	}
	return r
}

func TestPackedRunsHoldEveryPointOnce(t *testing.T) {
	expected := story(map[string]int{"begin": 37, "grow": 5, "move": 1, "purge": 36})
	fates := append(crashes(), falseAnswers()...)
	seen := map[point]int{}
	for _, r := range expected.runs(fates) {
		for _, of := range r.points {
			if of[0].fate.deadly() && len(of) != 1 {
				t.Errorf("a daemon cannot die of %v", of)
			}
			for _, p := range of {
				seen[p]++
			}
		}
	}
	for step, of := range expected.points(fates...) {
		for _, p := range of {
			if seen[p] != 1 {
				t.Errorf("%s: %v is tried %d times", step, p, seen[p])
			}
		}
	}
	if len(seen) != count(expected.points(fates...)) {
		t.Errorf("%d points are tried, of %d", len(seen), count(expected.points(fates...)))
	}
}

func TestTheFirstRunsAreSpread(t *testing.T) {
	order := spread(100)
	if sorted := slices.Sorted(slices.Values(order)); sorted[0] != 0 || sorted[99] != 99 || len(slices.Compact(sorted)) != 100 {
		t.Fatalf("not each number once: %v", order)
	}
	first := slices.Sorted(slices.Values(order[:10]))
	for i := 1; i < len(first); i++ {
		if gap := first[i] - first[i-1]; gap > 25 {
			t.Errorf("a gap of %d between the first ten: %v", gap, first)
		}
	}
	kinds := map[fate]bool{}
	for _, r := range story(map[string]int{"begin": 80, "grow": 40}).runs(append(crashes(), falseAnswers()...))[:60] {
		for _, of := range r.points {
			for _, p := range of {
				kinds[p.fate] = true
			}
		}
	}
	if len(kinds) != len(crashes())+len(falseAnswers()) {
		t.Errorf("the first sixty runs have only %v", slices.Collect(maps.Keys(kinds)))
	}
}

func TestPointsAreReadAsTheyAreWritten(t *testing.T) {
	for _, p := range []point{
		{step: "move", fate: before, request: "api GET /api/v1/configmaps?labelSelector=a&watch=true #2"},
		{step: "begin", fate: retry429, request: "git ls-refs /shop.git #1"},
	} {
		if read, err := parsePoint(p.String()); err != nil || read != p {
			t.Errorf("%v is read as %v, %v", p, read, err)
		}
	}
	if _, err := parsePoint("move never api GET / #1"); err == nil {
		t.Error("a fate that there is not is taken")
	}
}

func TestRequestsHaveTheSameNameInEveryRun(t *testing.T) {
	for _, test := range []struct{ method, url, body, want string }{
		{"GET", "/api/v1/pods?watch=true&resourceVersion=17&timeoutSeconds=431&labelSelector=x", "", "GET /api/v1/pods?labelSelector=x&watch=true"},
		{"PATCH", "/api/v1/namespaces/a/configmaps/b?fieldManager=kubesync&force=true", "{}", "PATCH /api/v1/namespaces/a/configmaps/b"},
		{"PATCH", "/api/v1/namespaces/a/events/kubesync-shop.18a2f", "{}", "PATCH /api/v1/namespaces/a/events/kubesync-shop"},
		{"POST", "/shop.git/git-upload-pack", "0014command=ls-refs", "ls-refs /shop.git"},
		{"POST", "/shop.git/git-upload-pack", "0014command=fetch", "fetch /shop.git"},
	} {
		request, err := http.NewRequest(test.method, "http://server"+test.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := lineOf(request, []byte(test.body)); got != test.want {
			t.Errorf("%s %s is %q, not %q", test.method, test.url, got, test.want)
		}
	}
}

func TestRevisionsOfTheStory(t *testing.T) {
	revisions := 0
	for _, at := range steps() {
		if len(revision(at.name)) > 0 {
			revisions++
		}
		for repo := range revision(at.name) {
			if !slices.Contains(repoNames(), repo) {
				t.Errorf("step %s changes a repo %q that there is not", at.name, repo)
			}
		}
	}
	if revisions < 8 {
		t.Errorf("the story has %d revisions", revisions)
	}
	if storyFile("applied/legacy.yaml") == "" {
		t.Error("there is nothing to adopt")
	}
}

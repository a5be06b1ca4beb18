package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

func TestSeries(t *testing.T) {
	t.Parallel()
	hundred := make(series, 0, 100)
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for name, test := range map[string]struct{ got, want float64 }{
		"odd":      {series{3, 1, 2}.median(), 2},
		"even":     {series{4, 1, 2, 3}.median(), 2.5},
		"99 %":     {hundred.quantile(0.99), 99},
		"all":      {hundred.quantile(1), 100},
		"of three": {series{1, 3, 2}.quantile(0.99), 3},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	fast, slow := series{1, 1, 1}, series{10, 10, 10}
	for name, test := range map[string]struct {
		line line
		met  string
	}{
		"as fast as may be":  {atMost("", series{1.2}, "peer", series{1}, 1.2), "yes"},
		"slower":             {atMost("", slow, "peer", fast, 1.2), "no"},
		"ten times faster":   {fasterThan("", fast, "peer", slow, 10), "yes"},
		"not twenty":         {fasterThan("", fast, "peer", slow, 20), "no"},
		"at the limit":       {within("", 3, 3, count), "yes"},
		"too many":           {within("", 4, 3, count), "no"},
		"as many as must be": {exactly("", 1, 1, ""), "yes"},
		"none":               {exactly("", 0, 1, ""), "no"},
		"never measured":     {atMost("", nil, "peer", nil, 1), "no"},
	} {
		if test.line.met != test.met {
			t.Errorf("%s: %s", name, test.line)
		}
	}
}

// TestSets proves that inputs depend on seed and size alone, and have the size.
func TestSets(t *testing.T) {
	t.Parallel()
	for name, generate := range map[string]func(uint64, int) (set, error){"mixed": mixed, "ConfigMaps": configMaps} {
		first, err := generate(1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		again, err := generate(1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		other, err := generate(2, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(first.files, again.files) || maps.Equal(first.files, other.files) {
			t.Errorf("%s: a seed does not decide what is made", name)
		}
		if len(first.files) != len(first.objects) {
			t.Errorf("%s: %d files of %d objects", name, len(first.files), len(first.objects))
		}
	}
	all, err := mixed(1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for kind, n := range all.kinds() {
		counts[kind.Kind] = n
	}
	want := map[string]int{"Namespace": 20, "ServiceAccount": 245, "ConfigMap": 245, "Service": 245, "Deployment": 245}
	if !maps.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
}

func TestPollsOf(t *testing.T) {
	t.Parallel()
	ask := func(kind gitserver.Kind, bytes int) gitserver.Request {
		return gitserver.Request{Kind: kind, Path: "/site.git/x", Body: "12345", Bytes: bytes}
	}
	other := gitserver.Request{Kind: gitserver.ListRefs, Path: "/other.git/x", Bytes: 1}
	for name, test := range map[string]struct {
		log  []gitserver.Request
		want pollCosts
	}{
		"one request each": {
			[]gitserver.Request{ask(gitserver.ListRefs, 10), other, ask(gitserver.ListRefs, 10), ask(gitserver.ListRefs, 10)},
			pollCosts{polls: 2, requests: 2, bytes: 30},
		},
		"two each, begun and broken off in between": {
			[]gitserver.Request{
				ask(gitserver.ListRefs, 10), ask(gitserver.Advertise, 7), ask(gitserver.ListRefs, 10), ask(gitserver.Advertise, 7),
			},
			pollCosts{polls: 1, requests: 2, bytes: 27},
		},
		"before protocol v2": {
			[]gitserver.Request{ask(gitserver.Advertise, 7), ask(gitserver.Advertise, 7)},
			pollCosts{polls: 1, requests: 1, bytes: 12},
		},
	} {
		got, err := pollsOf(test.log, "site")
		if err != nil || got != test.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, test.want)
		}
	}
	if _, err := pollsOf([]gitserver.Request{ask(gitserver.ListRefs, 10)}, "site"); err == nil {
		t.Error("one poll says nothing about what comes with each")
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	ask := func(stage, id, verb, resource, uri string) request {
		r := request{Stage: stage, AuditID: id, Verb: verb, RequestURI: uri}
		r.ObjectRef.Resource = resource
		return r
	}
	all := []request{
		ask("ResponseStarted", "1", "watch", "configmaps", ""),
		ask("ResponseStarted", "2", "watch", "configmaps", ""),
		ask("ResponseComplete", "2", "watch", "configmaps", ""),
		ask("ResponseComplete", "3", "update", "leases", ""),
		ask("ResponseComplete", "4", "patch", "services", "/api?dryRun=All"),
		ask("ResponseComplete", "5", "patch", "services", "/api"),
		ask("ResponseComplete", "6", "list", "services", "/api"),
	}
	if got := openWatches(all); !maps.Equal(got, map[string]int{"configmaps": 1}) {
		t.Errorf("open watches: %v", got)
	}
	if got := examples(writes(all)); got != "1 × patch services" {
		t.Errorf("writes: %s", got)
	}
	if got := examples(work(all)); got != "2 × patch services, 1 × list services" {
		t.Errorf("work: %s", got)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	full, err := scaleNamed("full")
	if err != nil {
		t.Fatal(err)
	}
	r := report{scale: full}
	for _, b := range benchmarks() {
		r.add(b, []line{text("something", "1|2")}, nil)
	}
	var out strings.Builder
	r.write(&out)
	if want := "| something | 1/2 |  |  |  |  |\n"; strings.Count(out.String(), want) != len(benchmarks()) {
		t.Errorf("not %q for each benchmark:\n%s", want, out.String())
	}
}

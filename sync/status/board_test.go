package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
)

const (
	firstCommit  = "1111111111111111111111111111111111111111"
	secondCommit = "2222222222222222222222222222222222222222"
)

// at returns a minute of the tests' time.
func at(minute int) time.Time {
	return time.Date(2026, 1, 1, 9, minute, 0, 0, time.UTC)
}

// later is a minute after whatever the clock says while the tests run.
const later = 200 * 365 * 24 * 60

// outcome returns what became of a ConfigMap.
func outcome(action apply.Action, name string) apply.Outcome {
	o := apply.Outcome{ID: manifest.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}, Action: action, Origin: manifest.Origin{File: name + ".yaml", Line: 1}}
	switch action {
	case apply.Failed, apply.Refused:
		o.Err = errors.New("the API server said no to " + name)
	case apply.Pending, apply.Blocked:
		o.Reason = "it waits"
	}
	return o
}

// report returns a report of a sync that began at a minute and took two seconds.
func report(minute int, commit string, outcomes ...apply.Outcome) sync.Report {
	return sync.Report{
		Repo: "shop", URL: "https://git.example/shop", Tier: manifest.Application,
		Revision: repo.Revision{ID: commit, Ref: "refs/heads/master", Subject: "Sell more", Author: "Ann <ann@shop.example>"},
		Stages:   []sync.StageTime{{Stage: sync.Resolving, Duration: time.Second}},
		Result:   apply.Result{Outcomes: outcomes},
		Started:  at(minute), Finished: at(minute).Add(2 * time.Second), Next: at(minute + 5),
	}
}

// failedReport returns a report of a sync that a stage ended.
func failedReport(minute int, stage sync.Stage, text string) sync.Report {
	r := report(minute, "")
	r.FailedStage, r.Err, r.Failures = stage, errors.New(text), 1
	return r
}

// leading returns a board of the leader.
func leading(options Options) *Board {
	b := NewBoard(options)
	b.Lead(true)
	return b
}

// only returns the one object whose name is given.
func only(t *testing.T, b *Board, name string) Object {
	t.Helper()
	objects, _ := b.Objects("shop", Filter{Text: "/" + name})
	if len(objects) != 1 {
		t.Fatalf("%d objects are called %s, want one: %+v", len(objects), name, objects)
	}
	return objects[0]
}

// shop returns what the board knows of the repo shop.
func shop(t *testing.T, b *Board) Detail {
	t.Helper()
	detail, found := b.Repo("shop")
	if !found {
		t.Fatal("the board does not know the repo")
	}
	return detail
}

func TestAFailedSyncLeavesTheObjectsAsTheyWere(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a"), outcome(apply.Created, "b")))
	b.Observe(failedReport(5, sync.Resolving, "no route to host"))
	r := shop(t, b)
	if r.State != sync.Failed || r.Healthy || !strings.Contains(r.Error, "no route to host") || r.Failures != 1 {
		t.Errorf("state %s, healthy %t, error %q, failures %d", r.State, r.Healthy, r.Error, r.Failures)
	}
	if r.Revision.ID != firstCommit || r.Applied.ID != firstCommit {
		t.Errorf("revision %+v, applied %+v: the last good one stays in force", r.Revision, r.Applied)
	}
	if r.Objects[ObjectSynced] != 2 || r.Counts[apply.Created] != 2 || !r.LastVerified.Equal(at(0).Add(2*time.Second)) {
		t.Errorf("objects %v, counts %v, verified %s", r.Objects, r.Counts, r.LastVerified)
	}
	if len(r.Syncs) != 2 || r.Syncs[0].Stage != sync.Resolving {
		t.Errorf("syncs %+v", r.Syncs)
	}
}

func TestARevisionThatWasNotAppliedIsTold(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a")))
	broken := failedReport(5, sync.Planning, "")
	broken.Revision.ID = secondCommit
	broken.Err = manifest.Problems{{Origin: manifest.Origin{File: "a.yaml", Line: 3}, Object: "ConfigMap/a", Text: "spec: unknown field"}}
	b.Observe(broken)
	r := shop(t, b)
	if r.Revision.ID != secondCommit || r.Applied.ID != firstCommit {
		t.Errorf("revision %s, applied %s", r.Revision.Short(), r.Applied.Short())
	}
	if len(r.Problems) != 1 || r.Problems[0].File != "a.yaml" || r.Problems[0].Line != 3 || r.Problems[0].Object != "ConfigMap/a" {
		t.Errorf("problems %+v", r.Problems)
	}
}

func TestASyncThatWasCutShortChangesOnlyWhatItReached(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a"), outcome(apply.Created, "b")))
	cut := report(5, secondCommit, outcome(apply.Failed, "a"))
	cut.FailedStage, cut.Err = sync.Applying, errors.New("the API server cannot be reached")
	b.Observe(cut)
	if a, c := only(t, b, "a"), only(t, b, "b"); a.State != ObjectFailed || c.State != ObjectSynced {
		t.Errorf("a is %s, b is %s", a.State, c.State)
	}
	if applied := shop(t, b).Applied.ID; applied != firstCommit {
		t.Errorf("applied %s, but the sync did not come to its end", applied)
	}
}

func TestASyncThatLooksAtDifferencesLeavesTheOthersUnchanged(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a"), outcome(apply.Created, "b"), outcome(apply.Created, "c")))
	differs := report(5, secondCommit, outcome(apply.Configured, "a"))
	differs.Result.Others = 2
	b.Observe(differs)
	if a, other := only(t, b, "a"), only(t, b, "b"); a.Action != apply.Configured || other.Action != apply.Unchanged || other.State != ObjectSynced {
		t.Errorf("a is %s, b is %s and %s", a.Action, other.Action, other.State)
	}
	if r := shop(t, b); r.Objects[ObjectSynced] != 3 || r.Counts[apply.Unchanged] != 2 || r.Counts[apply.Configured] != 1 || r.Applied.ID != secondCommit {
		t.Errorf("objects %v, counts %v, applied %s", r.Objects, r.Counts, r.Applied.ID)
	}
	again := report(10, secondCommit)
	again.Result.Others = 3
	b.Observe(again)
	if a := only(t, b, "a"); a.Action != apply.Unchanged || a.State != ObjectSynced {
		t.Errorf("after a sync that looked at nothing a is %s and %s", a.Action, a.State)
	}
}

func TestSinceIsWhenTheStateBegan(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a"), outcome(apply.Pending, "b")))
	b.Observe(report(5, firstCommit, outcome(apply.Unchanged, "a"), outcome(apply.Pending, "b")))
	b.Observe(report(10, firstCommit, outcome(apply.Unchanged, "a"), outcome(apply.Created, "b")))
	began := func(minute int) time.Time { return at(minute).Add(2 * time.Second) }
	a := only(t, b, "a")
	if !a.Since.Equal(began(0)) || !a.Changed.Equal(began(0)) || a.Action != apply.Unchanged {
		t.Errorf("a: since %s, changed %s, action %s", a.Since, a.Changed, a.Action)
	}
	if c := only(t, b, "b"); c.State != ObjectSynced || !c.Since.Equal(began(10)) {
		t.Errorf("b: %s since %s", c.State, c.Since)
	}
}

func TestPrunedObjectsAreHistory(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a"), outcome(apply.Created, "b")))
	b.Observe(report(5, secondCommit, outcome(apply.Unchanged, "a"), outcome(apply.Pruned, "b")))
	if objects, _ := b.Objects("shop", Filter{}); len(objects) != 1 {
		t.Errorf("objects %+v, want a alone", objects)
	}
	r := shop(t, b)
	if changes := r.Syncs[0].Changes; len(changes) != 1 || changes[0].Object != "ConfigMap/shop/b" || changes[0].Action != apply.Pruned {
		t.Errorf("changes %+v", changes)
	}
	if len(b.repos["shop"].tracks) != 1 {
		t.Error("what is gone is still kept")
	}
}

func TestDriftIsKeptUntilItIsCorrected(t *testing.T) {
	t.Parallel()
	drift := apply.Drift{Repo: "shop", ID: outcome(apply.Unchanged, "a").ID, What: "changed", Fields: []string{".data.x"}, Managers: []string{"kubectl-edit"}}
	with := func(change func(*apply.Drift)) apply.Drift {
		d := drift
		change(&d)
		return d
	}
	corrected := with(func(d *apply.Drift) { d.Corrected = true })
	tests := map[string]struct {
		drifts  []apply.Drift
		then    apply.Outcome // of a sync that began after them; zero for none
		state   ObjectState
		healthy bool
	}{
		"corrected":           {[]apply.Drift{corrected}, apply.Outcome{}, ObjectSynced, true},
		"left, as wanted":     {[]apply.Drift{drift}, apply.Outcome{}, ObjectDrifted, false},
		"corrected by a sync": {[]apply.Drift{drift}, outcome(apply.Configured, "a"), ObjectSynced, true},
		"corrected by others": {[]apply.Drift{drift}, outcome(apply.Unchanged, "a"), ObjectSynced, true},
		"failed, then corrected": {[]apply.Drift{with(func(d *apply.Drift) { d.Err = errors.New("forbidden") }), corrected},
			apply.Outcome{}, ObjectSynced, true},
		"conflict": {[]apply.Drift{with(func(d *apply.Drift) { d.Corrected, d.Conflict, d.Retry = true, true, time.Minute })},
			outcome(apply.Unchanged, "a"), ObjectConflict, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := leading(Options{})
			b.Observe(report(0, firstCommit, outcome(apply.Created, "a")))
			for _, d := range test.drifts {
				b.Drift(d)
			}
			if test.then.Action != "" {
				b.Observe(report(later, firstCommit, test.then))
			}
			a := only(t, b, "a")
			if a.State != test.state || a.Drift == nil || a.Drift.Times != len(test.drifts) || a.Drift.Managers[0] != "kubectl-edit" {
				t.Errorf("state %s, want %s; drift %+v", a.State, test.state, a.Drift)
			}
			if r := shop(t, b); r.Healthy != test.healthy {
				t.Errorf("healthy %t, want %t", r.Healthy, test.healthy)
			}
		})
	}
}

func TestTheHistoryHasTwentyEntriesAndJoinsWhatIsTheSame(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a")))
	for minute := range 30 {
		b.Observe(report(minute+1, firstCommit, outcome(apply.Unchanged, "a")))
	}
	syncs := shop(t, b).Syncs
	if len(syncs) != 2 || syncs[0].Runs != 30 || !syncs[0].Started.Equal(at(1)) || len(syncs[1].Changes) != 1 {
		t.Fatalf("syncs %+v, want one that changed something and 30 as one", syncs)
	}
	for minute := range 50 {
		b.Observe(failedReport(minute, sync.Resolving, fmt.Sprintf("error %d", minute)))
	}
	if syncs = shop(t, b).Syncs; len(syncs) != keptSyncs || !strings.Contains(syncs[0].Error, "error 49") {
		t.Errorf("%d syncs, the newest with %q", len(syncs), syncs[0].Error)
	}
}

func TestOnlyTheLastChangeHasDiffsAndNotTooLongOnes(t *testing.T) {
	t.Parallel()
	with := func(name, diff string) apply.Outcome {
		o := outcome(apply.Configured, name)
		o.Diff = diff
		return o
	}
	b := leading(Options{})
	b.Observe(report(0, firstCommit, with("a", "-old")))
	before := shop(t, b)
	b.Observe(report(5, firstCommit, outcome(apply.Unchanged, "a")))
	if diff := shop(t, b).Syncs[1].Changes[0].Diff; diff != "-old" {
		t.Errorf("the diff of the last change is %q", diff)
	}
	b.Observe(report(10, secondCommit, with("a", strings.Repeat("+long\n", keptDiffs)), with("b", "+new")))
	syncs := shop(t, b).Syncs
	if old := syncs[2].Changes[0].Diff; old != "" || before.Syncs[0].Changes[0].Diff != "-old" {
		t.Errorf("an old change still has the diff %q, or a snapshot has lost it", old)
	}
	if changes := syncs[0].Changes; changes[0].Diff != "" || changes[1].Diff != "+new" {
		t.Errorf("%d bytes and %q", len(changes[0].Diff), changes[1].Diff)
	}
}

func TestTheStageThatRunsIsTold(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Begin(sync.Progress{Repo: "shop", Stage: sync.Resolving, Began: at(0)})
	if r := shop(t, b); r.Phase == nil || r.Phase.Stage != sync.Resolving || r.State != Waiting {
		t.Errorf("phase %+v, state %s", r.Phase, r.State)
	}
	b.Observe(report(0, firstCommit))
	if r := shop(t, b); r.Phase != nil || r.State != sync.Synced {
		t.Errorf("phase %+v, state %s", r.Phase, r.State)
	}
}

func TestListedReposAreShownBeforeTheirFirstSync(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.List([]Listed{{Name: "shop", URL: "https://git.example/shop"}, {Name: "base"}}, nil)
	b.List(nil, errors.New("404"))
	view := b.Overview()
	if len(view.Repos) != 2 || view.Repos[0].Name != "shop" || view.Repos[0].State != Waiting || view.Repos[0].URL == "" || view.Healthy {
		t.Errorf("overview %+v", view)
	}
	if view.ListError == nil || view.ListError.Error != "404" {
		t.Errorf("list error %+v", view.ListError)
	}
	b.List([]Listed{{Name: "base"}}, nil)
	if view = b.Overview(); len(view.Repos) != 1 || view.ListError != nil {
		t.Errorf("overview %+v", view)
	}
}

// sightless is a cluster that cannot be seen.
type sightless struct{ blind []inventory.Blind }

func (s sightless) Blind() []inventory.Blind   { return s.blind }
func (s sightless) Unlisted() []apply.Unlisted { return []apply.Unlisted{{Repo: "old"}} }

func TestWhatIsNotWatchedIsStale(t *testing.T) {
	t.Parallel()
	lost := sightless{[]inventory.Blind{
		{What: "configmaps", Since: at(3), Err: errors.New("connection refused")},
		{What: "secrets", Since: at(2), Err: errors.New("connection refused")},
	}}
	b := NewBoard(Options{Cluster: lost})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a")))
	if stale := shop(t, b).Stale; stale == nil || !strings.Contains(stale.Reasons[0], "is on standby") {
		t.Errorf("a process that does not hold the Lease says it is fresh: %+v", stale)
	}
	b.Lead(true)
	r := shop(t, b)
	if r.Stale == nil || !r.Stale.Since.Equal(at(2)) || len(r.Stale.Reasons) != 2 || r.Healthy {
		t.Errorf("stale %+v, healthy %t", r.Stale, r.Healthy)
	}
	if old := b.Overview().Unlisted; len(old) != 1 || old[0].Repo != "old" {
		t.Errorf("unlisted %+v", old)
	}
}

// patient is a health that says the same of all.
type patient map[manifest.ID]health.Health

func (p patient) Health(string) map[manifest.ID]health.Health { return p }

func TestHealthyMeansThatAllObjectsAreCurrent(t *testing.T) {
	t.Parallel()
	a, c := outcome(apply.Created, "a"), outcome(apply.Created, "b")
	seen := patient{a.ID: {State: health.Current}, c.ID: {State: health.InProgress, Message: "Available: 1/3"}}
	b := leading(Options{Health: seen})
	b.Observe(report(0, firstCommit, a, c))
	r := shop(t, b)
	if r.Healthy || r.Health[health.Current] != 1 || r.Health[health.InProgress] != 1 {
		t.Errorf("healthy %t, health %v", r.Healthy, r.Health)
	}
	objects, _ := b.Objects("shop", Filter{})
	if objects[0].Name != "b" || objects[0].Health.Message == "" {
		t.Errorf("the object that is not current does not come first: %+v", objects)
	}
	if objects, _ = b.Objects("shop", Filter{Health: "in progress"}); len(objects) != 1 {
		t.Errorf("filtered %+v", objects)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a"), outcome(apply.Failed, "b"), outcome(apply.Pending, "c")))
	tests := map[string]struct {
		filter Filter
		want   string
	}{
		"all":            {Filter{}, "b c a"}, // the worst first
		"state":          {Filter{State: "pending"}, "c"},
		"kind":           {Filter{Kind: "configmap"}, "b c a"},
		"another kind":   {Filter{Kind: "Secret"}, ""},
		"text of name":   {Filter{Text: "ConfigMap/shop/A"}, "a"},
		"text of reason": {Filter{Text: "said no"}, "b"},
		"text of file":   {Filter{Text: "c.yaml:1"}, "c"},
		"both":           {Filter{Text: "said no", State: "pending"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, _ := b.Objects("shop", test.filter)
			var names []string
			for _, o := range objects {
				names = append(names, o.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAReaderThatDoesNotKeepUpIsDropped(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	slow, _, _ := b.Subscribe()
	quick, stop, _ := b.Subscribe()
	for minute := range eventBuffer + 1 {
		b.Observe(report(minute, firstCommit))
		if event := <-quick; event.Type != "sync" || !strings.Contains(string(event.Data), `"repo":"shop"`) {
			t.Fatalf("event %s %s", event.Type, event.Data)
		}
	}
	for range eventBuffer {
		<-slow
	}
	if _, open := <-slow; open {
		t.Error("a reader that is too far behind was waited for")
	}
	stop()
	if _, open := <-quick; open {
		t.Error("a reader that stopped gets events")
	}
	b.Observe(report(0, firstCommit)) // reaches no one, and hurts no one
	for range maxReaders {
		if _, _, ok := b.Subscribe(); !ok {
			t.Fatal("a reader was turned away although others had left")
		}
	}
	if _, _, ok := b.Subscribe(); ok {
		t.Error("there is no end to the readers")
	}
}

func TestSecretsAreMaskedEverywhere(t *testing.T) {
	t.Parallel()
	b := leading(Options{Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }})
	const secret = "hunter2"
	bad := outcome(apply.Failed, "a")
	bad.Err, bad.Warnings = errors.New(secret), []string{secret}
	r := report(0, firstCommit, bad, apply.Outcome{ID: manifest.ID{Kind: "Secret", Name: "s"}, Action: apply.Configured, Diff: secret, Reason: secret})
	r.Revision.Subject, r.Revision.Author, r.Notes = secret, secret, []string{secret}
	r.Result.PruneHeld, r.Result.Waits, r.Result.Warnings = secret, secret, []string{secret}
	b.Observe(r)
	b.Drift(apply.Drift{Repo: "shop", ID: bad.ID, Err: errors.New(secret)})
	b.List(nil, errors.New(secret))
	b.Begin(sync.Progress{Repo: "shop", Stage: sync.Resolving})
	objects, _ := b.Objects("shop", Filter{})
	if shown := jsonOf(t, b.Overview(), shop(t, b), objects); strings.Contains(shown, secret) {
		t.Errorf("a secret is shown:\n%s", shown)
	}
}

func TestInterruptedSyncsAreNoNews(t *testing.T) {
	t.Parallel()
	b := leading(Options{})
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a")))
	stopped := failedReport(5, sync.Applying, "stopping")
	stopped.Interrupted = true
	b.Observe(stopped)
	if r := shop(t, b); r.State != sync.Synced || r.Error != "" || len(r.Syncs) != 1 {
		t.Errorf("state %s, error %q, %d syncs", r.State, r.Error, len(r.Syncs))
	}
}

// A quiet sync of a large repo must not make garbage of all its objects.
func TestAQuietSyncAllocatesNothingPerObject(t *testing.T) {
	outcomes := make([]apply.Outcome, 10_000)
	for i := range outcomes {
		outcomes[i] = outcome(apply.Unchanged, fmt.Sprintf("object-%d", i))
	}
	b := leading(Options{})
	quiet := report(0, firstCommit, outcomes...)
	b.Observe(quiet)
	if n := testing.AllocsPerRun(5, func() { b.Observe(quiet) }); n > 100 {
		t.Errorf("%.0f allocations for 10,000 objects that did not change", n)
	}
}

// A repo that leaves the list is shown until it was unlisted; if the term of the one
// writer ends before that, no one will report it, and it goes with the list.
func TestUnlistedInAnotherTerm(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(b *Board, others []Listed){
		"unlisted in the term":   func(b *Board, others []Listed) { b.List(others, nil); b.Lead(false) },
		"unlisted between terms": func(b *Board, others []Listed) { b.Lead(false); b.List(others, nil) },
		"unlisted in the next":   func(b *Board, others []Listed) { b.Lead(false); b.Lead(true); b.List(others, nil) },
		"unlisted in good order": func(b *Board, others []Listed) { b.List(others, nil); b.Unlist("shop") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := leading(Options{})
			b.List([]Listed{{Name: "shop"}, {Name: "site"}}, nil)
			b.Observe(report(0, firstCommit, outcome(apply.Created, "a")))
			between(b, []Listed{{Name: "site"}})
			if repos := b.Overview().Repos; len(repos) != 1 || repos[0].Name != "site" {
				t.Errorf("the board shows %+v", repos)
			}
		})
	}
	b := leading(Options{})
	b.List([]Listed{{Name: "shop"}}, nil)
	b.Observe(report(0, firstCommit, outcome(apply.Created, "a")))
	b.List([]Listed{}, nil)
	if repos := b.Overview().Repos; len(repos) != 1 {
		t.Errorf("before it was unlisted the board shows %+v", repos)
	}
}

package cli

import (
	"strconv"
	"strings"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
)

// recorded makes an overview of what the parents say.
func recorded(records []parent.Record) status.Overview {
	overview := status.Overview{Healthy: len(records) > 0, Repos: []status.Repo{}, Unlisted: []status.Unlisted{}}
	for _, record := range records {
		r := recordedRepo(record)
		overview.Repos = append(overview.Repos, r)
		overview.Healthy = overview.Healthy && r.Healthy
	}
	return overview
}

// recordedRepo is a repo as its parent has it.
func recordedRepo(record parent.Record) status.Repo {
	r := status.Repo{
		Name: record.Repo, URL: record.URL, Tier: record.Tier, State: status.Waiting,
		Counts: map[apply.Action]int{}, Objects: objectsOf(record.Result),
		LastChange: record.Written,
	}
	if record.Revision.ID != "" {
		r.Revision, r.Applied = &record.Revision, &record.Revision
	}
	if record.Result == "" {
		return r
	}
	r.State = sync.Synced
	if r.Objects[status.ObjectFailed]+r.Objects[status.ObjectRefused]+r.Objects[status.ObjectPending] > 0 {
		r.State, r.Error = sync.Partial, record.Result
	}
	r.Healthy = r.State == sync.Synced
	return r
}

// objectsOf reads a result such as "12 synced, 1 failed".
func objectsOf(result string) map[status.ObjectState]int {
	counts := map[status.ObjectState]int{}
	for part := range strings.SplitSeq(result, ",") {
		number, state, _ := strings.Cut(strings.TrimSpace(part), " ")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			counts[status.ObjectState(state)] += n
		}
	}
	return counts
}

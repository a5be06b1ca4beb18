package apply

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubesync/kubesync/apply/manifest"
)

// Action is what was done about one object. The set is closed: log lines, the
// dry run's output and whatever else reports on a sync use these words and no others.
type Action string

const (
	Created    Action = "created"    // was absent, is there now
	Configured Action = "configured" // was there, has changed
	Unchanged  Action = "unchanged"  // was as declared
	Pruned     Action = "pruned"     // left git, deleted and observed gone
	Blocked    Action = "blocked"    // left git, may or can not be deleted yet
	Pending    Action = "pending"    // waits for its CRD or Namespace, or to be gone and created again
	Refused    Action = "refused"    // not ours to write
	Failed     Action = "failed"     // tried, and the API server said no
)

// Actions lists every action in the order reports show them.
func Actions() []Action {
	return []Action{Created, Configured, Unchanged, Pruned, Blocked, Pending, Refused, Failed}
}

// Outcome is what became of one object in one sync.
type Outcome struct {
	ID     manifest.ID
	Origin manifest.Origin // zero for objects that left git
	Action Action
	// Reason says why for Blocked, Pending and Refused, and may add to the others
	// (for example which immutable field had an object recreated).
	Reason string
	// Exempt marks what is Blocked whatever a user approves: by its annotations, its owner
	// or the configuration. All else that is Blocked waits for something.
	Exempt bool
	// Err is set for Failed and Refused.
	Err error
	// NeedsApproval says of a Blocked object that it goes as soon as a person approves that.
	NeedsApproval bool
	// Diff is a unified diff, Secret values masked: in a dry run of what would change in
	// the cluster, else of what changed in the manifest of an object that was configured
	// for that, if this process has seen both. It may be empty.
	Diff string
	// Unverified marks a dry run's outcome that the API server could not confirm,
	// because what the object depends on is itself still to come.
	Unverified bool
	// Warnings are the API server's and our own, for a person to read.
	Warnings []string
}

// Result is what one sync came to.
type Result struct {
	Outcomes []Outcome
	Warnings []string
	// PruneHeld says, for a person, why what left git is not deleted and what
	// would release it; empty if nothing is held as a whole.
	PruneHeld string
	// Approve is the command by which a person approves what this revision prunes;
	// empty if nothing waits for that.
	Approve string
	// Waits says for which other repos pruning waits, since what left this one may have
	// moved there; empty if for none. It goes on by itself.
	Waits string
	// Others is how many objects were not looked at, because nothing has happened to them or
	// their manifests since the sync before: they are Unchanged, and not among the Outcomes.
	Others int
	// Suspended says who stopped every write to the set; empty if no one did.
	Suspended string
}

// Counts returns how many objects had each action.
func (r Result) Counts() map[Action]int {
	counts := map[Action]int{}
	if r.Others > 0 {
		counts[Unchanged] = r.Others
	}
	for _, outcome := range r.Outcomes {
		counts[outcome.Action]++
	}
	return counts
}

// WaitingPrunes returns how many objects left git and wait to be deleted.
func (r Result) WaitingPrunes() int {
	waiting := 0
	for _, o := range r.Outcomes {
		if o.Action == Blocked && !o.Exempt {
			waiting++
		}
	}
	return waiting
}

// Err returns why the cluster is not what git says: objects that failed, were
// refused or are pending. It is nil where all that is missing is an approved
// prune, since that waits for a person.
func (r Result) Err() error {
	var problems []error
	for _, o := range r.Outcomes {
		switch o.Action {
		case Failed, Refused, Pending:
			problems = append(problems, o.problem())
		}
	}
	return errors.Join(problems...)
}

// problem words what keeps an object from being as declared.
func (o Outcome) problem() error {
	where := ""
	if o.Origin.File != "" {
		where = o.Origin.String() + ": "
	}
	if o.Err != nil {
		return fmt.Errorf("%s%s: %s: %w", where, o.ID, o.Action, o.Err)
	}
	return fmt.Errorf("%s%s: %s: %s", where, o.ID, o.Action, o.Reason)
}

// Summary counts the actions in one line, for example "2 created, 1 failed".
func (r Result) Summary() string {
	if r.Suspended != "" {
		return "suspended"
	}
	counts := r.Counts()
	var parts []string
	for _, action := range Actions() {
		if counts[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[action], action))
		}
	}
	if len(parts) == 0 {
		return "no objects"
	}
	return strings.Join(parts, ", ")
}

// state words what the set is now, as opposed to what was done for it: the same
// after a sync that changed everything and after one that changed nothing.
func (r Result) state() string {
	counts := r.Counts()
	synced := counts[Created] + counts[Configured] + counts[Unchanged]
	text := fmt.Sprintf("%d synced", synced)
	for _, action := range []Action{Blocked, Pending, Refused, Failed} {
		if counts[action] > 0 {
			text += fmt.Sprintf(", %d %s", counts[action], action)
		}
	}
	return text
}

// remaining returns what left git and is still there.
func (r Result) remaining() []manifest.ID {
	var ids []manifest.ID
	for _, o := range r.Outcomes {
		if o.Origin.File == "" && o.Action != Pruned {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

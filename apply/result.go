package apply

// Action is what was done about one object. The set is closed: log lines, the
// dry run's output and whatever else tells of a sync use these words and no others.
type Action string

const (
	Created    Action = "created"    // was absent, is there now
	Configured Action = "configured" // was there, has changed
	Unchanged  Action = "unchanged"  // was as declared
	Pruned     Action = "pruned"     // left git, deleted and observed gone
	Blocked    Action = "blocked"    // left git, may or can not be deleted yet
	Parked     Action = "parked"     // waits for its CRD or Namespace
	Refused    Action = "refused"    // not ours to write
	Failed     Action = "failed"     // tried, and the API server said no
)

// Actions lists every action in the order reports show them.
func Actions() []Action {
	return []Action{Created, Configured, Unchanged, Pruned, Blocked, Parked, Refused, Failed}
}

// Outcome is what became of one object in one sync.
type Outcome struct {
	ID     ID
	Origin Origin // zero for objects that left git
	Action Action
	// Reason says why for Blocked, Parked and Refused, and may add to the others
	// (for example which immutable field had an object recreated).
	Reason string
	// Err is set for Failed and Refused.
	Err error
	// Diff is the unified diff of a dry run, Secret values masked; else empty.
	Diff string
	// Unverified marks a dry run's outcome that the API server could not confirm,
	// because what the object depends on is itself still to come.
	Unverified bool
	// Warnings are the API server's and our own, for a person to read.
	Warnings []string
}

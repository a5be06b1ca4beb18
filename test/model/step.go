package main

import (
	"fmt"
	"strings"
)

// op is what a step does.
type op string

// What a walk can do. The names are what is printed, and nothing depends on them.
const (
	// In git.
	opPush       op = "push"
	opForce      op = "force-push"    // back to an earlier commit
	opRevert     op = "revert"        // a new commit with an earlier tree
	opDropBranch op = "delete-branch" // the next push brings it back
	opMove       op = "move"          // an object, from one repo to another

	// To objects of repos, by hand.
	opSpoil     op = "spoil"    // a field of ours
	opAnnotate  op = "annotate" // a field not ours
	opDelete    op = "delete"
	opUnlabel   op = "unlabel"
	opRelabel   op = "relabel" // with another repo's label
	opAlienate  op = "alienate"
	opReclaim   op = "reclaim" // undoes opAlienate
	opSuspend   op = "suspend"
	opUnsuspend op = "unsuspend"
	opKeep      op = "keep"
	opUnkeep    op = "unkeep"

	// To objects of repos, by other appliers.
	opClientSide op = "client-side-apply"
	opServerSide op = "server-side-apply"       // fields not ours
	opConflict   op = "server-side-apply-force" // fields of ours, by force

	// To objects of other owners.
	opForeign       op = "foreign"
	opForeignLabel  op = "label-foreign"
	opForeignEdit   op = "edit-foreign"
	opForeignDelete op = "delete-foreign"

	// To parents.
	opApprove       op = "approve"
	opSuspendRepo   op = "suspend-repo"
	opUnsuspendRepo op = "unsuspend-repo"

	// To the configuration.
	opUnlist    op = "unlist"
	opList      op = "list"
	opPruneOff  op = "prune-off"
	opPruneOn   op = "prune-on"
	opBreakList op = "break-list"
	opMendList  op = "mend-list"

	// To daemons.
	opRestart    op = "restart"
	opKill       op = "kill"
	opStandby    op = "standby"
	opNoStandby  op = "no-standby"
	opFailover   op = "kill-leader" // the standby has to take over
	opRelease    op = "stop-leader" // the same, cleanly
	opAPIOutage  op = "api-outage"  // until the next quiet point
	opAPICut     op = "api-cut"     // connections, once
	opAPIFaults  op = "api-faults"  // some requests, until the next quiet point
	opGitOutage  op = "git-outage"  // until the next quiet point
	opQuiet      op = "quiet"
	opWait       op = "wait" // lets daemons get somewhere, no more
	maxSpoilt       = 7      // ten corrections of an object in ten minutes are a conflict
	maxBurst        = 4      // steps between two quiet points
	maxSlow         = 1      // of them such as take many seconds
	forceHistory    = 4      // how far back a forced push goes
	repoCapacity    = 14     // objects
)

// edit is one change to a tree.
type edit struct {
	id    id
	gone  bool
	entry entry
}

// step is one step of a walk.
type step struct {
	op       op
	repo     string
	to       string // the other repo
	id       id
	edits    []edit
	number   int // how far back, how a thing fails, …
	trailer  bool
	broken   string
	addFirst bool
}

func (s step) String() string {
	text := string(s.op)
	add := func(format string, args ...any) { text += " " + fmt.Sprintf(format, args...) }
	if s.repo != "" {
		add("%s", s.repo)
	}
	if s.id != (id{}) {
		add("%s", s.id)
	}
	if s.to != "" {
		add("to %s", s.to)
	}
	if s.op == opMove && s.addFirst {
		add("(there first)")
	}
	var edits []string
	for _, e := range s.edits {
		if e.gone {
			edits = append(edits, "-"+e.id.String())
			continue
		}
		edits = append(edits, "+"+e.id.String()+e.entry.String())
	}
	if len(edits) > 0 {
		add("%s", strings.Join(edits, " "))
	}
	if s.broken != "" {
		add("broken: %s", s.broken)
	}
	if s.trailer {
		add("approved")
	}
	if s.number > 0 {
		add("(%d)", s.number)
	}
	return text
}

func (e entry) String() string {
	text := fmt.Sprintf("=v%d", e.variant)
	for _, flag := range []struct {
		set  bool
		name string
	}{{e.dir > 0, fmt.Sprintf("@%d", e.dir)}, {e.invalid, "!invalid"}, {e.ignore, "!ignore"}, {e.keep, "!keep"}} {
		if flag.set {
			text += flag.name
		}
	}
	return text
}

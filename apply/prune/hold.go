package prune

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resolved says of a reason to hold a prune that no one has to approve anything.
const resolved = " (pruning goes on by itself when that is resolved)"

// Hold is what decides whether a prune as a whole waits for approval.
type Hold struct {
	Failed   int      // declared objects that failed or were refused
	Waiting  int      // declared objects that wait for their kind or Namespace
	Unseen   []string // kinds that are declared no more and cannot be looked at
	Declared int      // objects that the revision declares
	Limit    string   // why more would go than PRUNE_LIMIT allows; empty if not
	Changes  []string // what else than the revision decides over the manifests, and changed
}

// Reasons returns why the prune waits; none if it does not.
func (h Hold) Reasons() []string {
	var reasons []string
	if h.Failed > 0 {
		reasons = append(reasons, CountObjects(h.Failed)+" could not be applied"+resolved)
	}
	if h.Waiting > 0 {
		reasons = append(reasons, CountObjects(h.Waiting)+" pending"+resolved)
	}
	for _, kind := range h.Unseen {
		// What cannot be counted must not make a prune small enough for its limit.
		reasons = append(reasons, fmt.Sprintf("what is left of %s is not known", kind)+resolved)
	}
	if h.Declared == 0 {
		reasons = append(reasons, "the revision declares no objects at all")
	}
	if h.Limit != "" {
		reasons = append(reasons, h.Limit)
	}
	return append(reasons, h.Changes...)
}

// Rendering is what decides over a set's manifests besides the revision: each setting by
// its name, with a text that differs if the setting does. It is recorded in the parent,
// hence no text may reveal a secret: command words are hashed.
type Rendering map[string]string

// Changes says in what a rendering differs from the one that was recorded, in order;
// nothing if none was. Such a change can make every object leave git by mistake.
func (r Rendering) Changes(recorded Rendering) []string {
	if len(recorded) == 0 {
		return nil
	}
	names := maps.Clone(r)
	maps.Copy(names, recorded)
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, now := recorded[name], r[name]
		switch {
		case before == now:
		case isHash(before) || isHash(now):
			changes = append(changes, name+" changed")
		default:
			changes = append(changes, fmt.Sprintf("%s changed from %q to %q", name, before, now))
		}
	}
	return changes
}

// hashMark starts a text that stands for one which is not to be read.
const hashMark = "sha256:"

// HashText returns what stands for a setting whose text may be a secret; "" for "".
func HashText(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hashMark + hex.EncodeToString(sum[:hashSize])
}

func isHash(text string) bool { return strings.HasPrefix(text, hashMark) }

// CountObjects words a number of objects.
func CountObjects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

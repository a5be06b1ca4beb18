package prune

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// minPrefix is how many digits of a revision an approval must give.
const minPrefix = 7

// hashSize is how many bytes of a hash stand for what goes.
const hashSize = 6

// Object is an object that may have to go.
type Object struct {
	UID  types.UID
	Name string // "Kind/namespace/name", or "Kind/name"
}

// Hash returns what an approval may say instead of a number: 12 hexadecimal digits that
// stand for just these objects, in any order.
func Hash(objects []Object) string {
	lines := make([]string, len(objects))
	for i, o := range objects {
		lines[i] = string(o.UID) + " " + o.Name + "\n"
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:hashSize])
}

// Approval is what a person approves by the annotation kubesync.io/approve-prune.
type Approval struct {
	Revision string   // in full, or 7 digits and more of it
	Count    string   // how many objects go; empty if it is not said
	Hash     string   // which objects go, as Hash has them; empty if it is not said
	Names    []string // single objects, as Object.Name has them
}

var (
	countText = regexp.MustCompile(`^[0-9]{1,7}$`)
	hashText  = regexp.MustCompile(`^[0-9a-f]{12}$`)
)

// ParseApproval reads "<revision>,<item>…", where an item is a number of objects, a hash
// of them, or an object's "Kind/namespace/name". The zero value is what "" says.
func ParseApproval(text string) (Approval, error) {
	revision, rest, _ := strings.Cut(strings.TrimSpace(text), ",")
	a := Approval{Revision: strings.TrimSpace(revision)}
	for item := range strings.SplitSeq(rest, ",") {
		switch item = strings.TrimSpace(item); {
		case item == "":
		case strings.Contains(item, "/"):
			a.Names = append(a.Names, item)
		case countText.MatchString(item):
			a.Count = strings.TrimLeft(item[:len(item)-1], "0") + item[len(item)-1:]
		case hashText.MatchString(item):
			a.Hash = item
		default:
			return Approval{}, fmt.Errorf("%q is neither a number of objects, nor a hash of them (12 hexadecimal digits), nor an object's Kind/namespace/name", item)
		}
	}
	return a, nil
}

// String is the reverse of ParseApproval; "" for what approves nothing.
func (a Approval) String() string {
	items := []string{a.Revision}
	for _, item := range append([]string{a.Count, a.Hash}, a.Names...) {
		if item != "" {
			items = append(items, item)
		}
	}
	if len(items) == 1 {
		return ""
	}
	return strings.Join(items, ",")
}

// For reports whether the approval is for a revision.
func (a Approval) For(revision string) bool {
	return a.Revision != "" && a.Revision == revision || len(a.Revision) >= minPrefix && strings.HasPrefix(revision, a.Revision)
}

// Covers returns nil if the approval is for this revision and for all these objects, no
// more and no fewer, else why it is not.
func (a Approval) Covers(revision string, going []Object) error {
	switch {
	case a.Revision == "":
		return errors.New("there is none")
	case !a.For(revision):
		return fmt.Errorf("it is for revision %s", a.Revision)
	case a.Count == "" && a.Hash == "" && len(a.Names) == 0:
		return errors.New("it does not say what goes: it wants a number or a hash behind the revision")
	case a.Count == "" && a.Hash == "":
		return errors.New("it names single objects")
	case a.Count != "" && a.Count != strconv.Itoa(len(going)):
		return fmt.Errorf("it is for %s objects, and %d would go", a.Count, len(going))
	case a.Hash != "" && a.Hash != Hash(going):
		return errors.New("it is for other objects than those that would go now")
	}
	return nil
}

// NamesOne reports whether the approval is for this revision and names an object.
func (a Approval) NamesOne(revision, name string) bool {
	return a.For(revision) && slices.Contains(a.Names, name)
}

// Spent returns what is left of the approval when what it says of all objects was used,
// and what it says of some that are gone.
func (a Approval) Spent(all bool, gone map[string]bool) Approval {
	if all {
		a.Count, a.Hash = "", ""
	}
	a.Names = slices.DeleteFunc(slices.Clone(a.Names), func(name string) bool { return gone[name] })
	return a
}

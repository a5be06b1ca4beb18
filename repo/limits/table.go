package limits

import "strings"

// Limit is one bound. The comment at each says what is counted.
type Limit int

const (
	// Entries is the number of files and directories that are looked through for
	// manifests.
	Entries Limit = iota
	// Manifests is the size of all manifests of a revision.
	Manifests
	// Expansion is the size of one document with its YAML aliases replaced by what they
	// stand for.
	Expansion
	// List is the size of the list of repos in CONFIG.
	List

	count int = iota
)

// Sizes in bytes.
const (
	kibi = 1 << 10
	mebi = 1 << 20
	gibi = 1 << 30
)

// bound is what there is to know of a limit.
type bound struct {
	name string // in LIMITS, and in errors
	what string // is counted, for people
	unit unit
	most int64 // by default: bytes, nanoseconds, or a number
	why  string
}

// bound returns what there is to know of a limit.
func (l Limit) bound() bound {
	switch l {
	case Entries:
		return bound{"entries", "files and directories looked through for manifests", number, 100_000,
			"symbolic links can make a small repo look endless"}
	case Manifests:
		return bound{"manifests", "all manifests of a revision", size, 64 * mebi,
			"some 30,000 objects; they are held in memory"}
	case Expansion:
		return bound{"expansion", "one document with its YAML aliases (*) replaced by what they stand for", size, 32 * mebi,
			"ten times what an API server takes for an object"}
	case List:
		return bound{"list", "the list of repos in 'CONFIG'", size, 4 * mebi,
			"some ten thousand repos"}
	}
	panic("unknown limit")
}

// Bound describes a limit for its reader. In Meaning and Reason, code stands between
// single quotes.
type Bound struct {
	Name    string
	Default string // as LIMITS takes it
	Meaning string
	Reason  string
}

// Sentence tells all of it but the name.
func (b Bound) Sentence() string {
	return strings.ToUpper(b.Meaning[:1]) + b.Meaning[1:] + ". Default: '" + b.Default + "': " + b.Reason + "."
}

// Bounds lists all limits, in the order in which they are documented.
func Bounds() []Bound {
	var list []Bound
	for l := range Limit(count) {
		b := l.bound()
		list = append(list, Bound{Name: b.name, Default: b.unit.plain(b.most), Meaning: b.what, Reason: b.why})
	}
	return list
}

// String returns the name that LIMITS knows a limit by.
func (l Limit) String() string { return l.bound().name }

package limits

import "strings"

// Limit is one bound. Of each, the table below says what is counted, in which unit.
type Limit int

// The limits that LIMITS sets: an operator meets them with a large repository.
const (
	Pack Limit = iota
	Objects
	Entries
	File
	Manifests
	Checkout
	CommandMemory
	CommandDisk
	KustomizeMemory

	variables int = iota
)

// The limits that are fixed: no honest repository or server comes near them.
const (
	Refs Limit = iota + Limit(variables)
	Delta
	Inflated
	Chain
	Commit
	Tree
	Depth
	Ignore
	Documents
	Values
	Nesting
	Expansion
	List
	CommandProcesses
	CommandFiles
	CommandDepth
	CommandFile
	CommandOutput

	count int = iota + variables
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
	most int64  // by default: bytes, or a number
	why  string // for the reference, of a limit that LIMITS sets
}

// bound returns what there is to know of a limit.
func (l Limit) bound() bound {
	return [count]bound{
		Pack: {"pack", "what a git server sends for one request, compressed", size, 96 * mebi,
			"it is held in memory, and beside it that of the revision before"},
		Objects: {"objects", "git objects sent for one request", number, 250_000,
			"each takes some 100 bytes to keep track of"},
		Entries: {"entries", "files and directories looked through for manifests", number, 100_000,
			"symbolic links can make a small repo look endless"},
		File: {"file", "one manifest, or another file that is read as a whole", size, 16 * mebi,
			"five times what an API server takes for an object, and it is held in several forms while it is parsed"},
		Manifests: {"manifests", "all manifests of a revision", size, 24 * mebi,
			"some 10,000 objects; they are held in memory, in more than one form"},
		Checkout: {"checkout", "all files written for 'CMD', each counted as 8 KiB more than it has", size, 2 * gibi,
			"the disk is shared by all repos"},
		CommandMemory: {"cmd-memory", "all processes of one run of 'CMD'", size, 2 * gibi,
			"a node that runs out of memory ends the whole pod"},
		CommandDisk: {"cmd-disk", "all files in 'INDIR', 'OUTDIR' and 'TMPDIR'", size, 4 * gibi,
			"the disk is shared by all repos"},
		KustomizeMemory: {"kustomize-memory", "one build of a kustomization", size, 1 * gibi,
			"a node that runs out of memory ends the whole pod"},

		// Some 200,000 refs.
		Refs: {name: "refs", what: "one list of the branches and tags of a repo", unit: size, most: 16 * mebi},
		// Such an object is held in memory as a whole, with what it is made of.
		Delta: {name: "delta", what: "one git object that is put together from others, or is no file", unit: size, most: 32 * mebi},
		// Some ten seconds of one core.
		Inflated: {name: "inflated", what: "all git objects sent for one request, not compressed", unit: size, most: 4 * gibi},
		// Git makes 50, and 250 with its most thorough settings.
		Chain: {name: "chain", what: "git objects that one is put together from", unit: number, most: 250},
		// Longer than any that was written by hand.
		Commit: {name: "commit", what: "one commit or annotated tag, with its message", unit: size, most: 1 * mebi},
		// Some 150,000 files; each takes ten times its entry to look up.
		Tree: {name: "tree", what: "the list of one directory in git", unit: size, most: 8 * mebi},
		// Ten times what people can find their way in.
		Depth: {name: "depth", what: "directories in each other", unit: number, most: 200},
		// Each file is compared with each of its lines.
		Ignore: {name: "ignore", what: "'.kubesyncignore'", unit: size, most: 64 * kibi},
		// Each takes some 800 bytes, however empty.
		Documents: {name: "documents", what: "documents, and items of Lists, in all manifests of a revision", unit: number, most: 50_000},
		// Each takes some 300 bytes while it is parsed; the largest
		// CustomResourceDefinitions have some 50,000. The guess is on the high side.
		Values: {name: "values", what: "values in one document, counted by the characters between them, such as ',' and ':'", unit: number, most: 200_000},
		// An API server takes 10,000; the deepest schemas of
		// CustomResourceDefinitions have some 60.
		Nesting: {name: "nesting", what: "mappings and lists in each other in one document", unit: number, most: 500},
		// Ten times what an API server takes for an object.
		Expansion: {name: "expansion", what: "one document with its YAML aliases (*) replaced by what they stand for", unit: size, most: 32 * mebi},
		// Some ten thousand repos.
		List: {name: "list", what: "the list of repos in 'CONFIG'", unit: size, most: 4 * mebi},
		// A node has some 30,000 for all its pods.
		CommandProcesses: {name: "cmd-processes", what: "processes and threads of one run of 'CMD'", unit: number, most: 1000},
		// File systems can run out of them too.
		CommandFiles: {name: "cmd-files", what: "files and directories in 'INDIR', 'OUTDIR' and 'TMPDIR'", unit: number, most: 1_000_000},
		// Paths have an end.
		CommandDepth: {name: "cmd-depth", what: "directories in each other in 'INDIR', 'OUTDIR' and 'TMPDIR'", unit: number, most: 200},
		// The kernel enforces it at once (RLIMIT_FSIZE).
		CommandFile: {name: "cmd-file", what: "one file that 'CMD' writes", unit: size, most: 2 * gibi},
		// At debug level it all goes to the log.
		CommandOutput: {name: "cmd-output", what: "what one run of 'CMD' prints", unit: size, most: 64 * mebi},
	}[l]
}

// variable reports whether LIMITS sets the limit.
func (l Limit) variable() bool { return int(l) < variables }

// Bound describes a limit that LIMITS sets, for the reference. In Meaning and Reason,
// code stands between single quotes.
type Bound struct {
	Name    string
	Default string // as LIMITS takes it
	Meaning string
	Reason  string
}

// Sentence is the whole description but the name.
func (b Bound) Sentence() string {
	return strings.ToUpper(b.Meaning[:1]) + b.Meaning[1:] + ". Default: '" + b.Default + "': " + b.Reason + "."
}

// Bounds lists the limits that LIMITS sets, in the order in which they are documented.
func Bounds() []Bound {
	var list []Bound
	for l := range Limit(variables) {
		b := l.bound()
		list = append(list, Bound{Name: b.name, Default: b.unit.plain(b.most), Meaning: b.what, Reason: b.why})
	}
	return list
}

// String returns the name of a limit in LIMITS and in errors.
func (l Limit) String() string { return l.bound().name }

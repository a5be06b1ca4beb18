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

	// CommandMemory is the memory of all processes of one run of CMD.
	CommandMemory
	// CommandProcesses is their number, threads included.
	CommandProcesses
	// CommandDisk is the size of all files in INDIR, OUTDIR and TMPDIR.
	CommandDisk
	// CommandFiles is their number, directories included.
	CommandFiles
	// CommandDepth is the number of directories in each other.
	CommandDepth
	// CommandFile is the size of one file.
	CommandFile
	// CommandOutput is the size of what CMD prints, in one run.
	CommandOutput
	// KustomizeMemory is the memory of one build of a kustomization.
	KustomizeMemory

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
	case CommandMemory:
		return bound{"cmd-memory", "all processes of one run of 'CMD'", size, 2 * gibi,
			"a node that runs out of memory ends the whole pod"}
	case CommandProcesses:
		return bound{"cmd-processes", "processes and threads of one run of 'CMD'", number, 1000,
			"a node has some 30,000 for all its pods"}
	case CommandDisk:
		return bound{"cmd-disk", "all files in 'INDIR', 'OUTDIR' and 'TMPDIR'", size, 4 * gibi,
			"the disk is shared by all repos"}
	case CommandFiles:
		return bound{"cmd-files", "files and directories in 'INDIR', 'OUTDIR' and 'TMPDIR'", number, 1_000_000,
			"file systems can run out of them too"}
	case CommandDepth:
		return bound{"cmd-depth", "directories in each other in 'INDIR', 'OUTDIR' and 'TMPDIR'", number, 200,
			"paths have an end"}
	case CommandFile:
		return bound{"cmd-file", "one file that 'CMD' writes", size, 2 * gibi,
			"the kernel sees to it at once"}
	case CommandOutput:
		return bound{"cmd-output", "what one run of 'CMD' prints", size, 64 * mebi,
			"at debug level it all goes to the log"}
	case KustomizeMemory:
		return bound{"kustomize-memory", "one build of a kustomization", size, 1 * gibi,
			"a node that runs out of memory ends the whole pod"}
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

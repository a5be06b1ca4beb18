package limits

import (
	"strings"
	"time"
)

// Limit is one bound. The comment at each says what is counted.
type Limit int

const (
	// Refs is the size of one list of branches and tags.
	Refs Limit = iota
	// Pack is the size of one answer with git objects, compressed as it is sent.
	Pack
	// Objects is the number of git objects in one answer.
	Objects
	// Delta is the size of one git object that is put together from others, or that is
	// no file: these are held in memory as a whole.
	Delta
	// Inflated is the size of all git objects of one answer when they are put together.
	Inflated
	// Chain is the number of git objects that one is put together from.
	Chain
	// Silence is the time that a git server may send nothing during a request.
	Silence

	// Commit is the size of one commit or annotated tag, with its message.
	Commit
	// Tree is the size of one directory's list in git.
	Tree
	// Depth is the number of directories in each other.
	Depth
	// Ignore is the size of .kubesyncignore.
	Ignore
	// Entries is the number of files and directories that are looked through for
	// manifests.
	Entries
	// Checkout is the size of all files that are written for CMD.
	Checkout
	// CheckoutFiles is their number, directories included.
	CheckoutFiles

	// File is the size of one manifest, and of each other file that is read as a whole.
	File
	// Manifests is the size of all manifests of a revision.
	Manifests
	// Documents is the number of documents, and of items of Lists, in all manifests.
	Documents
	// Values is the number of values in one document, which is guessed, on the high side,
	// by the characters that stand between values.
	Values
	// Nesting is the number of mappings and lists in each other in one document.
	Nesting
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
	case Refs:
		return bound{"refs", "one list of the branches and tags of a repo", size, 16 * mebi,
			"some 200,000 refs"}
	case Pack:
		return bound{"pack", "what a git server sends for one request, compressed", size, 96 * mebi,
			"it is held in memory, and beside it that of the revision before"}
	case Objects:
		return bound{"objects", "git objects sent for one request", number, 250_000,
			"each takes some 100 bytes to keep track of"}
	case Delta:
		return bound{"delta", "one git object that is put together from others, or is no file", size, 32 * mebi,
			"it is held in memory with what it is made of"}
	case Inflated:
		return bound{"inflated", "all git objects sent for one request, not compressed", size, 4 * gibi,
			"some ten seconds of one core"}
	case Chain:
		return bound{"chain", "git objects that one is put together from", number, 250,
			"git makes 50, and 250 when it is told to do its utmost"}
	case Silence:
		return bound{"silence", "a git server that sends nothing", duration, int64(time.Minute),
			"one that has something to compute says so every 5 s"}
	case Commit:
		return bound{"commit", "one commit or annotated tag, with its message", size, 1 * mebi,
			"longer than any that was written by hand"}
	case Tree:
		return bound{"tree", "the list of one directory in git", size, 8 * mebi,
			"some 150,000 files; each takes ten times its entry to look up"}
	case Depth:
		return bound{"depth", "directories in each other", number, 200,
			"ten times what anybody can find their way in"}
	case Entries:
		return bound{"entries", "files and directories looked through for manifests", number, 100_000,
			"symbolic links can make a small repo look endless"}
	case Ignore:
		return bound{"ignore", "'.kubesyncignore'", size, 64 * kibi,
			"each file is compared with each of its lines"}
	case Checkout:
		return bound{"checkout", "all files written for 'CMD'", size, 2 * gibi,
			"the disk is shared by all repos"}
	case CheckoutFiles:
		return bound{"checkout-files", "files and directories written for 'CMD'", number, 250_000,
			"as many as can be sent"}
	case File:
		return bound{"file", "one manifest, or another file that is read as a whole", size, 16 * mebi,
			"five times what an API server takes for an object, and it is held in several forms while it is parsed"}
	case Manifests:
		return bound{"manifests", "all manifests of a revision", size, 24 * mebi,
			"some 10,000 objects; they are held in memory, in more than one form"}
	case Documents:
		return bound{"documents", "documents, and items of Lists, in all manifests of a revision", number, 50_000,
			"each takes some 800 bytes, however empty"}
	case Values:
		return bound{"values", "values in one document, counted by the characters between them, such as ',' and ':'", number, 200_000,
			"each takes some 300 bytes while it is parsed; the largest CustomResourceDefinitions have some 50,000"}
	case Nesting:
		return bound{"nesting", "mappings and lists in each other in one document", number, 500,
			"an API server takes 10,000, the deepest schemas of CustomResourceDefinitions have some 60"}
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

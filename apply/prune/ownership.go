package prune

// Ownership is what is known of a live object that a set declares no more.
type Ownership struct {
	Label    bool // carries the set's label
	Entry    bool // has an entry in managedFields that an apply of kubesync's leaves
	Recorded bool // its UID is in the set's record
	Named    bool // a person's approval names it
}

// Verdict says what an object is to the set that declares it no more.
type Verdict int

const (
	// Foreign is not the set's, whatever its label says: it is left alone.
	Foreign Verdict = iota
	// Copied looks like the set's own, and the set has no record of having written it: a
	// backup tool restored it, a user copied it, or the record of it was lost.
	Copied
	// Own may be deleted, as far as ownership goes.
	Own
)

// Verdict judges the object. A label can be copied, and so can managedFields, by patching
// them on; a UID that the set recorded cannot.
func (o Ownership) Verdict() Verdict {
	switch {
	case !o.Label || !o.Entry:
		return Foreign
	case o.Recorded || o.Named:
		return Own
	}
	return Copied
}

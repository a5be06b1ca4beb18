package confine

// What the attacks, which go through transform, have to know.
const (
	Self        = self
	MostOpen    = mostOpen
	FirstVictim = firstVictim
	X32         = x32
)

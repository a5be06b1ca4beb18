package prune

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// keySize is how many bytes stand for a UID: the first four groups of an RFC 9562 UUID, 74
// of whose bits API servers choose at random. No one can have one made to match, and they
// distinguish 40,000 objects.
const keySize = 10

// uuidSize is how long a UUID is as text.
const uuidSize = 36

// Key stands for the UID of one object in a record.
type Key [keySize]byte

// KeyOf returns the key of a UID.
func KeyOf(uid types.UID) Key {
	if len(uid) == uuidSize {
		digits := uid[0:8] + uid[9:13] + uid[14:18] + uid[19:23]
		if key, err := hex.DecodeString(string(digits)); err == nil {
			return Key(key)
		}
	}
	sum := sha256.Sum256([]byte(uid)) // no API server's, but a UID may be any text
	return Key(sum[:keySize])
}

// Record is a set of objects, known by their UIDs. The zero value, nil, is empty and
// cannot be added to.
type Record map[Key]struct{}

// Has reports whether the record holds an object.
func (r Record) Has(uid types.UID) bool {
	_, has := r[KeyOf(uid)]
	return has
}

// Add adds an object.
func (r Record) Add(uid types.UID) { r[KeyOf(uid)] = struct{}{} }

// Remove takes an object out, if it is there.
func (r Record) Remove(uid types.UID) { delete(r, KeyOf(uid)) }

// Keep takes out all objects but those that are also in another record.
func (r Record) Keep(others Record) {
	maps.DeleteFunc(r, func(key Key, _ struct{}) bool {
		_, there := others[key]
		return !there
	})
}

// Encode returns the record as a parent stores it: the keys, in order. Of more than limit
// keys it stores the first: an object that is left out needs an approval that names it.
func (r Record) Encode(limit int) []byte {
	keys := slices.SortedFunc(maps.Keys(r), func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
	keys = keys[:min(len(keys), limit)]
	encoded := make([]byte, 0, len(keys)*keySize)
	for _, key := range keys {
		encoded = append(encoded, key[:]...)
	}
	return encoded
}

// Decode is the reverse of Encode. What is not as long as a key is left out.
func Decode(encoded []byte) Record {
	r := Record{}
	for chunk := range slices.Chunk(encoded, keySize) {
		if len(chunk) == keySize {
			r[Key(chunk)] = struct{}{}
		}
	}
	return r
}

package pack

import "encoding/binary"

// deltaSizes reads what a delta begins with (gitformat-pack(5)): the sizes of what it
// is put on and of what comes of it. rest are the instructions.
func deltaSizes(delta []byte) (base, result int64, rest []byte, err error) {
	for _, size := range []*int64{&base, &result} {
		// git's numbers are those of encoding/binary: seven bits a byte, the least first.
		value, n := binary.Uvarint(delta)
		if n <= 0 || value > 1<<62 {
			return 0, 0, nil, errDamaged("a delta does not say its sizes")
		}
		*size, delta = int64(value), delta[n:]
	}
	return base, result, delta, nil
}

// patch puts an object together from its base and a delta. It takes as much memory as
// the object, whose size is known to be allowed; go-git's takes up to three times that.
func patch(base, delta []byte, size int64) ([]byte, error) {
	of, result, todo, err := deltaSizes(delta)
	if err != nil {
		return nil, err
	}
	if of != int64(len(base)) || result != size {
		return nil, errDamaged("a delta is for another object")
	}
	out := make([]byte, 0, size)
	for len(todo) > 0 {
		part, rest, ok := instruction(base, todo)
		if !ok || len(part) > cap(out)-len(out) {
			return nil, errDamaged("a delta leads outside of its object")
		}
		out, todo = append(out, part...), rest
	}
	if len(out) < cap(out) {
		return nil, errDamaged("a delta ends too early")
	}
	return out, nil
}

// instruction carries out the first instruction of a delta: to take a part of the base,
// or some bytes that follow.
func instruction(base, delta []byte) (part, rest []byte, ok bool) {
	code := delta[0]
	delta = delta[1:]
	if code&0x80 == 0 {
		if code == 0 || int(code) > len(delta) {
			return nil, nil, false
		}
		return delta[:code], delta[code:], true
	}
	// Of four bytes of an offset and three of a length those are there whose bit is set.
	var numbers [7]byte
	for i := range numbers {
		if code&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, false
		}
		numbers[i], delta = delta[0], delta[1:]
	}
	from := int(numbers[0]) | int(numbers[1])<<8 | int(numbers[2])<<16 | int(numbers[3])<<24
	length := int(numbers[4]) | int(numbers[5])<<8 | int(numbers[6])<<16
	if length == 0 {
		length = 1 << 16
	}
	if from+length > len(base) {
		return nil, nil, false
	}
	return base[from : from+length], delta, true
}

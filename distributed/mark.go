package distributed

import "math/bits"

// markOf returns a mark of a limit's parameters: it looks ahead for at most span
// microseconds, and step distinguishes limits of one span. Values in Redis carry
// the mark, so that instances with other parameters neither cut the debt nor mix
// unnoticed. See span in prelude.lua.
//
// Limits that differ by less than a quarter may have the same mark, and so may
// some others.
func markOf(span, step int64) int64 {
	return 5*(quarters(span-1)+1) + (quarters(step)+1)%5
}

// quarters numbers the values (4+j)*2^k, j from 0 to 3, and returns the number of
// the largest one that is at most x; -1 below 4.
func quarters(x int64) int64 {
	if x < 4 {
		return -1
	}
	k := bits.Len64(uint64(x)) - 3
	return int64(4*k) + x>>k - 4
}

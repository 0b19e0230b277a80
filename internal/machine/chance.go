package machine

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// Rand is a random number, all of its bits.
func Rand() uint64 {
	if simulated != nil {
		return simulated.Rand()
	}
	return rand.Uint64()
}

// Float64 is a random number in [0, 1).
func Float64() float64 { return float64(Rand()>>11) / (1 << 53) }

// Hash is a hash of strings with a key of its own, which nobody can guess from
// outside the process. In a simulation the key comes from [Machine.Rand], and so
// the same run has the same hashes.
type Hash struct {
	seed maphash.Seed
	key  uint64 // in a simulation, else 0
}

// NewHash draws a key.
func NewHash() Hash {
	h := Hash{seed: maphash.MakeSeed()}
	if simulated != nil {
		h.key = simulated.Rand() | 1
	}
	return h
}

// Of hashes s.
func (h Hash) Of(s string) uint64 {
	if h.key != 0 {
		return repeatable(h.key, s)
	}
	return maphash.String(h.seed, s)
}

// repeatable is FNV-1a from a secret start, with the high bits mixed in.
func repeatable(key uint64, s string) uint64 {
	for i := range len(s) {
		key = (key ^ uint64(s[i])) * 0x100000001b3
	}
	hi, lo := bits.Mul64(key, 0x9e3779b97f4a7c15)
	return hi ^ lo
}

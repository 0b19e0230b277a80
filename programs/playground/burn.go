package main

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// burn takes d of processor time, which is longer by the clock if the
// processors are taken.
func burn(d time.Duration) {
	spin(uint64(float64(d/time.Microsecond) * perMicrosecond()))
}

// sink keeps the compiler from leaving the work out.
var sink atomic.Uint64

func spin(n uint64) {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
}

// perMicrosecond is how many turns of spin take a microsecond, by the fastest
// of some trials: the others were interrupted.
var perMicrosecond = sync.OnceValue(func() float64 {
	const turns = 1 << 20
	fastest := time.Duration(math.MaxInt64)
	for range 5 {
		began := time.Now()
		spin(turns)
		fastest = min(fastest, time.Since(began))
	}
	return turns / max(float64(fastest)/float64(time.Microsecond), 1)
})

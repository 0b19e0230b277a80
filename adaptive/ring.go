package adaptive

import (
	"sync"
	"sync/atomic"
)

// ring is time cut into buckets, of which the latest are kept. Whoever adds
// writes to the bucket of the moment and nothing else. When a new bucket
// begins, one goroutine, the first to notice, clears what has become too old;
// the others go on in the bucket before until it is done, so nobody waits.
//
// Time is an argument. An instant before the current bucket counts into it.
type ring struct {
	width   int64 // of a bucket, nanoseconds
	buckets []bucket
	current atomic.Int64 // number of the bucket being filled, since the epoch
	turning sync.Mutex
}

// bucket is two sums: how many, and how much.
type bucket struct{ n, sum atomic.Int64 }

func newRing(width int64, buckets int, at int64) *ring {
	r := &ring{width: width, buckets: make([]bucket, buckets)}
	r.current.Store(at / width)
	return r
}

// at is the bucket with a number.
func (r *ring) at(number int64) *bucket {
	return &r.buckets[uint64(number)%uint64(len(r.buckets))]
}

// add counts into the current bucket. Who lingers here for as long as the whole
// ring turns counts into a later one.
func (r *ring) add(n, sum int64) {
	b := r.at(r.current.Load())
	b.n.Add(n)
	b.sum.Add(sum)
}

// begin reports whether a new bucket has begun and the caller is the one to
// turn the ring: it then clears the buckets from first to last, all of which
// are too old, and calls finish(last).
func (r *ring) begin(at int64) (first, last int64, won bool) {
	last = at / r.width
	if last <= r.current.Load() || !r.turning.TryLock() {
		return 0, 0, false
	}
	was := r.current.Load()
	if last <= was {
		r.turning.Unlock()
		return 0, 0, false
	}
	return max(was+1, last-int64(len(r.buckets))+1), last, true
}

func (r *ring) finish(last int64) {
	r.current.Store(last)
	r.turning.Unlock()
}

// Package window counts over a sliding window of time.
package window

import (
	"sync"
	"sync/atomic"
)

// Ring is time cut into buckets, of which the latest are kept. Adding writes
// to the current bucket only. When a new bucket begins, the first goroutine to
// notice clears the buckets that have become too old. The others keep adding to
// the previous bucket meanwhile, so adding never waits.
//
// Time is an argument. An instant before the current bucket counts into it.
type Ring struct {
	Width   int64 // of a bucket, nanoseconds
	buckets []Bucket
	current atomic.Int64 // number of the current bucket, since the clock's origin
	turning sync.Mutex
}

// Bucket is a count and a sum.
type Bucket struct{ N, Sum atomic.Int64 }

// New makes a ring whose current bucket contains at.
func New(width int64, buckets int, at int64) *Ring {
	r := &Ring{Width: width, buckets: make([]Bucket, buckets)}
	r.current.Store(at / width)
	return r
}

// Len is the number of buckets.
func (r *Ring) Len() int { return len(r.buckets) }

// At is the bucket with a number.
func (r *Ring) At(number int64) *Bucket {
	return &r.buckets[uint64(number)%uint64(len(r.buckets))]
}

// Add counts into the current bucket. A goroutine that is delayed between the two
// additions may count into a later one.
func (r *Ring) Add(n, sum int64) {
	b := r.At(r.current.Load())
	b.N.Add(n)
	b.Sum.Add(sum)
}

// Begin reports whether a new bucket has begun and the caller is to turn the ring:
// it clears the buckets from first to last, which are too old, and calls
// Finish(last).
func (r *Ring) Begin(at int64) (first, last int64, won bool) {
	last = at / r.Width
	if last <= r.current.Load() || !r.turning.TryLock() {
		return 0, 0, false
	}
	current := r.current.Load()
	if last <= current {
		r.turning.Unlock()
		return 0, 0, false
	}
	return max(current+1, last-int64(len(r.buckets))+1), last, true
}

// Finish makes last the current bucket.
func (r *Ring) Finish(last int64) {
	r.current.Store(last)
	r.turning.Unlock()
}

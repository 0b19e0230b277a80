package adaptive

import (
	"sync"
	"sync/atomic"
)

// bucketRing is time cut into buckets, of which the latest are kept. Adding writes
// to the current bucket only. When a new bucket begins, the first goroutine to
// notice clears the buckets that have become too old. The others keep adding to
// the previous bucket meanwhile, so adding never waits.
//
// Time is an argument. An instant before the current bucket counts into it.
type bucketRing struct {
	width   int64 // of a bucket, nanoseconds
	buckets []bucket
	current atomic.Int64 // number of the current bucket, since the clock's origin
	turning sync.Mutex
}

// bucket is a count and a sum.
type bucket struct{ n, sum atomic.Int64 }

func newBucketRing(width int64, buckets int, at int64) *bucketRing {
	r := &bucketRing{width: width, buckets: make([]bucket, buckets)}
	r.current.Store(at / width)
	return r
}

// at is the bucket with a number.
func (r *bucketRing) at(number int64) *bucket {
	return &r.buckets[uint64(number)%uint64(len(r.buckets))]
}

// add counts into the current bucket. A goroutine that is delayed between the two
// additions may count into a later one.
func (r *bucketRing) add(n, sum int64) {
	b := r.at(r.current.Load())
	b.n.Add(n)
	b.sum.Add(sum)
}

// begin reports whether a new bucket has begun and the caller is to turn the ring:
// it clears the buckets from first to last, which are too old, and calls
// finish(last).
func (r *bucketRing) begin(at int64) (first, last int64, won bool) {
	last = at / r.width
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

func (r *bucketRing) finish(last int64) {
	r.current.Store(last)
	r.turning.Unlock()
}

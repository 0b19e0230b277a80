package algo

// LeakyBucket is the leaky bucket as a meter: requests pour in, the bucket
// leaks at the rate, and requests that would overflow it are denied.
//
// It decides exactly as a [TokenBucket] of the same rate and burst without
// MaxWait does, seen from the other side: the level of the one is what the
// other lacks. Take it where the limit is written down as a leaky bucket; the
// burst is the bucket's capacity. The leaky bucket as a queue, which delays
// instead, is the [Pacer].
//
// Bound: in any window of length w at most Burst + rate*w units are admitted,
// in exact integers, whatever the clock readings and however many goroutines.
// RetryAfter is exact. Arrivals that conform are never denied.
//
// Source: J. Turner, "New directions in communications", IEEE Communications
// Magazine, 1986; ITU-T I.371, continuous-state leaky bucket.
//
// Do not use it to smooth a flow: a full burst passes in no time. And not
// where "at most N in any window" is the contract.
type LeakyBucket struct {
	keyed[int64, struct{}]
	rated[int64, struct{}]
}

// NewLeakyBucket makes a leaky bucket with the options [Burst] (the capacity
// in units, 1 or more; default: the rate's count), [MaxKeys] and [DenyNew]. The
// error names the field and the invalid value.
func NewLeakyBucket(r Rate, opts ...Option) (*LeakyBucket, error) {
	return construct(&leakyBucket, Spec{Rate: r}, opts, newLeakyBucket)
}

var leakyBucket = kind{"leaky-bucket", "leaky bucket", []string{"Burst", "MaxKeys", "DenyNew"}}

func newLeakyBucket(s Spec) (*LeakyBucket, error) {
	l := new(LeakyBucket)
	if err := initBucket(&l.keyed, &l.rated, &leakyBucket, s, tokens); err != nil {
		return nil, err
	}
	return l, nil
}

// SetBurst changes the burst while the limiter runs. Keys keep their spent
// units. After the burst is raised no key waits longer than one that has just
// spent all of it.
func (b *LeakyBucket) SetBurst(n int64) error { return b.setBurst(n) }

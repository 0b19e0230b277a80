package algo

// NewLeakyBucket makes the leaky bucket as a meter: requests pour in, the bucket
// leaks at the rate, and requests that would overflow it are denied. The options are [Burst]
// (the capacity in units, 1 or more; default: the rate's count), [MaxKeys] and [DenyNew]. The
// error names the field and the invalid value.
//
// It decides exactly as a [NewTokenBucket] of the same rate and burst without
// MaxWait does, seen from the other side: the level of the one is what the
// other lacks. Take it where the limit is written down as a leaky bucket. The leaky bucket as
// a queue, which delays instead, is [NewPacer].
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
func NewLeakyBucket(r Rate, opts ...Option) (*RateLimiter, error) {
	return leakyBucket.construct(Spec{Rate: r}, opts)
}

var leakyBucket = kind{"leaky-bucket", "leaky bucket", []string{"Burst", "MaxKeys", "DenyNew"}, bucket(tokens, false)}

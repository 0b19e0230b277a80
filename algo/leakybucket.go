package algo

// NewLeakyBucket makes the leaky bucket as a meter: it denies requests that would overflow the
// bucket, exactly as [NewTokenBucket] does with the same rate and burst. [NewPacer] is the leaky
// bucket as a queue, which delays instead.
//
// The options are [Burst] (the capacity, 1 or more; default: the rate's count), [MaxKeys] and
// [DenyNew]. The error names the field and the invalid value.
//
// Bound: in any window of length w at most Burst + rate*w units are admitted, in exact integers.
// Arrivals that conform are never denied.
//
// Source: J. Turner, "New directions in communications", IEEE Communications Magazine, 1986.
func NewLeakyBucket(r Rate, opts ...Option) (*RateLimiter, error) {
	return leakyBucket.construct(Spec{Rate: r}, opts)
}

var leakyBucket = kind{"leaky-bucket", "leaky bucket", []string{"Burst", "MaxKeys", "DenyNew"}, bucket{tokens, false}}

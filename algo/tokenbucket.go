package algo

import "github.com/sluice-go/sluice/internal/decide"

// NewTokenBucket makes a limiter that admits bursts and holds the rate over time. It is the default
// choice. The options are [Burst] (default: the rate's count), [MaxWait], [MaxKeys] and [DenyNew]. The
// error names the field and the invalid value.
//
// The bucket holds Burst tokens and starts full; a unit of cost takes one, and the rate puts them back
// one by one. With [MaxWait] it admits a request that comes too early with a Delay.
//
// Bound: in any window of length w at most Burst + rate*w units are admitted, plus rate*MaxWait, in
// exact integers; with MaxWait Burst + rate*w of them start. With MaxWait both hold as long as no
// admission is canceled, or settled to less, while later ones wait. Arrivals that conform are never
// denied.
//
// State is one word a key, swapped without a lock. Source: the generic cell rate algorithm, ITU-T
// I.371.
//
// Do not use it where "at most N in any window" is the contract: see [NewSlidingLog] and
// [NewSlidingWindow].
func NewTokenBucket(r Rate, opts ...Option) (*RateLimiter, error) {
	return tokenBucket.construct(Spec{Rate: r}, opts)
}

var tokenBucket = kind{defaultAlgorithm, "token bucket", []string{"Burst", "MaxWait", "MaxKeys", "DenyNew"}, bucket{tokens, false}}

// tokens makes a bucket that denies or delays excess requests.
func tokens(s Spec, _ Rate) (*decide.GCRA, error) {
	burst := s.Burst
	if !s.Given("burst") {
		burst = s.Rate.Count
	}
	return decide.NewGCRA(s.Rate.local(), burst, s.MaxWait)
}

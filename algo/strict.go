package algo

import "github.com/sluice-go/sluice/internal/decide"

// Strict admits at most a quota in any window of time, with the state of a
// token bucket: one word a key, swapped without a lock.
//
// It is a token bucket (the generic cell rate algorithm, ITU-T I.371) whose burst
// B and refill are chosen so that together they never exceed the quota N: any
// window of length W admits no more than B + floor(W/T) units, so T is the
// shortest interval for which this bound is N for one period. In the long run
// N-B+1 units pass in each period. [Burst] chooses B, 1 to N: with N the whole
// quota may come at once and then one unit a period, with 1 units are spaced
// evenly and nothing of the rate is lost. The default is half of the quota,
// rounded up: then half of it may come at once, and half of it plus one unit
// passes in the long run.
//
// Bound: at most the quota in any window of length period, whatever the clock
// readings and however many goroutines. T is a period and a nanosecond divided
// by N-B+1.
//
// Do not use it where callers expect the whole quota both at once and in the
// long run: no limit with so little state has both. [SlidingLog] has, and
// [SlidingWindow] with [Cells] nearly.
type Strict struct {
	keyed[int64, struct{}]
	rated[int64, struct{}]
}

// NewStrict makes a strict limit of r.Count units in any r.Period, with the
// options [Burst] (1 to r.Count, default half of it, rounded up), [MaxKeys] and
// [DenyNew]. The error names the field and the invalid value.
func NewStrict(r Rate, opts ...Option) (*Strict, error) {
	return construct(&strict, Spec{Rate: r}, opts, newStrict)
}

var strict = kind{"strict", "strict", []string{"Burst", "MaxKeys", "DenyNew"}}

func newStrict(s Spec) (*Strict, error) {
	l := new(Strict)
	if err := initBucket(&l.keyed, &l.rated, &strict, s, strictTokens); err != nil {
		return nil, err
	}
	return l, nil
}

// strictTokens makes a bucket whose burst and refill together stay within the
// rate's count in any period.
func strictTokens(s Spec, _ Rate) (*decide.GCRA, error) {
	burst := s.Burst
	if !s.Given("burst") {
		burst = s.Rate.Count - s.Rate.Count/2
	}
	return decide.NewStrict(s.Rate.local(), burst)
}

// SetBurst changes the burst while the limiter runs. Keys keep their spent
// units. After the burst is raised no key waits longer than one that has just
// spent all of it.
func (l *Strict) SetBurst(n int64) error { return l.setBurst(n) }

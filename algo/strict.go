package algo

import (
	"fmt"
	"sync"
)

// Strict admits at most a quota in any window of time, with the state of a
// token bucket: one word a key, swapped without a lock.
//
// It is a token bucket (the generic cell rate algorithm, ITU-T I.371) whose
// burst B and refill are chosen so that together they never exceed the quota
// N: a window of length W admits at most B + floor(W/T) units, so T is the
// shortest for which that is N. In the long run N-B+1 units pass in each
// period. [Burst] chooses B, 1 to N: with N the whole quota may come at once and
// then one unit a period, with 1 units are spaced evenly and nothing of the
// rate is lost. The default is half of the quota, rounded up: then half of it may
// come at once and half of it, and one, passes in the long run.
//
// Bound: at most the quota in any window of length period, whatever the clock
// readings and however many goroutines. T is a period and a nanosecond divided
// by N-B+1.
//
// Do not use it where callers expect the whole quota both at once and in the
// long run: no limit with so little state has both. [SlidingLog] has, and
// [SlidingWindow] with [Cells] nearly.
type Strict struct {
	bucket
	settling sync.Mutex // serialises SetRate and SetBurst
	quota    strictQuota
}

// strictQuota is the limit as the user stated it.
type strictQuota struct {
	rate     Rate
	burst    int64
	burstSet bool // false: half of the rate's count
}

// NewStrict makes a strict limit of r.Count units in any r.Period, with the
// options [Burst] (1 to r.Count, default half of it, rounded up), [MaxKeys] and
// [OnFull]. The error names the field and the value that no limit can keep.
func NewStrict(r Rate, opts ...Option) (*Strict, error) {
	const name = "strict"
	s, err := configure(name, opts, "Burst", "MaxKeys", "OnFull")
	if err != nil {
		return nil, err
	}
	l := &Strict{quota: strictQuota{r, s.burst, s.burstSet}}
	refill, burst, err := l.quota.bucket()
	if err != nil {
		return nil, fmt.Errorf("algo: %s: %w", name, err)
	}
	if err := l.init(name, asked{rate: refill, burst: burst, burstSet: true}, s); err != nil {
		return nil, err
	}
	return l, nil
}

// bucket is the rate and burst of the token bucket that keeps q.
func (q strictQuota) bucket() (refill Rate, burst int64, err error) {
	if err := q.rate.validate(); err != nil {
		return refill, 0, err
	}
	n, burst := q.rate.Count, q.burst
	if !q.burstSet {
		burst = n - n/2
	}
	if burst < 1 || burst > n {
		return refill, 0, fmt.Errorf("burst is %d, want 1 to the %d of the rate", burst, n)
	}
	if q.rate.Period == maxSpan {
		return refill, 0, fmt.Errorf("rate: period is %v, want less than %v", q.rate.Period, maxSpan)
	}
	// A nanosecond more than the period, so that floor(period/T) < n-burst+1.
	return Rate{n - burst + 1, q.rate.Period + 1}, burst, nil
}

// SetRate changes the quota while the limiter runs. What keys owe stays owed,
// as time. A burst that was not set follows the new rate's count.
func (s *Strict) SetRate(r Rate) error {
	return s.change(func(q *strictQuota) { q.rate = r })
}

// SetBurst changes the burst while the limiter runs.
func (s *Strict) SetBurst(n int64) error {
	return s.change(func(q *strictQuota) { q.burst, q.burstSet = n, true })
}

func (s *Strict) change(by func(*strictQuota)) error {
	s.settling.Lock()
	defer s.settling.Unlock()
	q := s.quota
	by(&q)
	refill, burst, err := q.bucket()
	if err != nil {
		return fmt.Errorf("algo: %s: %w", s.name, err)
	}
	if err := s.set(func(a *asked) { a.rate, a.burst, a.burstSet = refill, burst, true }); err != nil {
		return err
	}
	s.quota = q
	return nil
}

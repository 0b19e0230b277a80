package algo

import (
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/keystore"
)

// NewSlidingLog makes a limiter that admits r.Count units, at most 65536, in any window of
// r.Period, exactly: it keeps the instant of every unit that it admitted, and a unit comes
// back the moment its instant is one period old.
//
// Bound: at most the quota in any window of length period, whatever the clock
// readings and however many goroutines, and nothing is denied that would keep
// it. A denial does not count; units given back can be spent again.
//
// State is a ring of instants for each key, one for each unit in its window: at most
// 65536, the largest quota. Each takes 4 bytes where the period is shorter than 2^32
// ns, about 4.3 s, and 8 otherwise. A ring begins with room for 8, doubles up to the
// quota when it is full, and stays with its slot for the next key, so that in the end
// no decision allocates. There are up to 2.7 slots for each of [MaxKeys], of 64 bytes:
// so many rings at most. A decision holds the key's own lock: for a few nanoseconds,
// or, when n units are added or given back, for as long as it takes to write n
// instants or to move those that are newer.
//
// Do not use it for large quotas: [NewSlidingWindow] with [Cells] keeps
// the same bound in little memory. A limit for protection alone is better a token bucket.
//
// The options are [MaxKeys] and [DenyNew]. The error names the field
// and the invalid value.
func NewSlidingLog(r Rate, opts ...Option) (*RateLimiter, error) {
	return slidingLog.construct(Spec{Rate: r}, opts)
}

var slidingLog = kind{"sliding-log", "sliding log", []string{"MaxKeys", "DenyNew"}, inValues((*decide.Timestamps).Inherit, slidingLogLimit)}

func slidingLogLimit(s Spec, _ Rate, _ engine.Decider[*decide.Timestamps], _ *keystore.Clock) (engine.Limit[*decide.Timestamps], error) {
	p, err := decide.NewSlidingLog(s.Rate.local())
	return engine.Limit[*decide.Timestamps]{Decider: p, Window: s.Rate.Period}, err
}

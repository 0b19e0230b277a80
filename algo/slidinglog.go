package algo

import (
	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// NewSlidingLog makes a limiter that admits r.Count units, at most 65536, in any window of r.Period,
// exactly: a unit comes back when its instant is one period old. The options are [MaxKeys] and
// [DenyNew]. The error names the field and the invalid value.
//
// Bound: at most the quota in any window of length period, and it denies nothing that would keep this.
// A denial does not count; refunded units can be spent again.
//
// State is an instant for each unit in the window, of 4 bytes if the period is shorter than 2^32 ns and
// 8 otherwise, and 64 bytes for each of up to 2.7 slots a key ([MaxKeys]). A decision about n units
// holds the key's own lock while it writes n instants.
//
// Do not use it for large quotas: [NewSlidingWindow] with [Cells] keeps the same bound in less memory.
func NewSlidingLog(r Rate, opts ...Option) (*RateLimiter, error) {
	return slidingLog.construct(Spec{Rate: r}, opts)
}

var slidingLog = kind{"sliding-log", "sliding log", []string{"MaxKeys", "DenyNew"}, inValues[decide.Timestamps]{(*decide.Timestamps).Inherit, slidingLogLimit}}

func slidingLogLimit(s Spec, _ Rate, _ engine.Decider[*decide.Timestamps], _ *keystore.Clock) (engine.Limit[*decide.Timestamps], error) {
	p, err := decide.NewSlidingLog(s.Rate.local())
	return engine.Limit[*decide.Timestamps]{Decider: p, Window: s.Rate.Period}, err
}

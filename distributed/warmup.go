package distributed

import (
	"errors"
	"math"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// warmup is Guava's SmoothWarmingUp: warmup.lua decides, with [decide.Warmup] in whole microseconds of the server's
// clock.
type warmup struct {
	decide.Params
	decide *decide.Warmup
	spec   algo.Spec
	cold   int64 // the price of a cold permit, in millionths of a warm one's
	clock
}

func newWarmup(s algo.Spec) (limit, error) {
	factor := 3.0
	if s.Given("cold") {
		factor = s.ColdFactor
	}
	if s.Warmup.Microseconds() == 0 {
		return nil, errors.New("warmup is 0: want a microsecond or more, or a token-bucket with wait")
	}
	cold := math.Round(min(factor, 1e7) * 1e6)
	d, err := decide.NewWarmup(microseconds(s.Rate), s.Warmup, s.MaxWait, cold/1e6)
	if err != nil {
		return nil, err
	}
	return &warmup{d.Params(), d, s, int64(cold), s.Clock()}, nil
}

func (w *warmup) script() *remote.Script { return warmupScript }

func (w *warmup) maxCost() int64 { return w.MaxCost }

func (w *warmup) acquireArgs(_ string, n int64) remote.Args {
	return remote.Args{opAcquire, w.Emission, w.Depth, w.cold, possible(n, w.MaxCost), w.MaxWait}
}

func (w *warmup) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	if a.Flag() == flagBanned {
		return whileBanned(w, n, a.Reply[0]-a.Now), algo.Handle{}
	}
	next, answer, quota := w.decide.Answer(decide.WarmupDebt(a.Reply[0], a.Reply[1]), a.Now, n)
	return decision(answer, quota), handle(w.decide.Charge(next, a.Now, n, answer.Delay), a.Now)
}

// refundArgs refunds n units as far as their charge still weighs; see [decide.Warmup.Refund].
func (w *warmup) refundArgs(h algo.Handle, n int64) remote.Args {
	weight, back, stored := w.decide.Weight(chargeOf(h), n)
	return remote.Args{opRefund, h.At, weight, back, stored, h.State[2]}
}

func (w *warmup) forceArgs(_ string, h algo.Handle, n int64) remote.Args {
	return remote.Args{opForce, w.Emission, w.Depth, w.cold, min(n, w.MaxCost), w.MaxDebt, w.decide.Least(chargeOf(h), n)}
}

func (w *warmup) resetArgs(string) remote.Args { return remote.Args{opReset} }

func (w *warmup) describe() algo.Description {
	return algo.Description{Rate: w.spec.Rate, Quota: 1, Window: micros(w.Emission)}
}

func (w *warmup) local(of instances, was algo.Limiter) algo.Limiter {
	s := w.spec
	s.Rate = slower(s.Rate, of.count)
	return portionOf(s, w.spec.Rate, w.clock, of, was)
}

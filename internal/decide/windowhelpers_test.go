package decide

import (
	"math/rand/v2"
	"time"
)

// window is one window with a state of its own, as a store decides on it. It
// answers with the instant at which the decision counts as well.
type window struct {
	decide func(now, n int64) (Verdict, int64)
	clone  func() window
	quota  int64
	period int64
	step   int64
	cell   func(at int64) int64
}

// onWord is a fixed window. A store reads the clock again where a word is
// implausible at its reading; here latest is the second reading.
func onWord(f *FixedWindow, word, latest int64) window {
	return window{
		decide: func(now, n int64) (v Verdict, at int64) {
			if latest = max(latest, now); !f.Plausible(word, now) {
				now = latest
				word, _ = f.Clamp(word, now)
			}
			word, v = f.Decide(word, now, n)
			return v, now
		},
		clone:  func() window { return onWord(f, word, latest) },
		quota:  f.quota,
		period: f.window.by,
		step:   f.unit,
		cell:   f.end,
	}
}

// onState is a sliding window.
func onState[S any](p slidingWindow[S], s *S, inherit func(heir, from *S), period, step int64, cell func(int64) int64) window {
	return window{
		decide: func(now, n int64) (Verdict, int64) {
			a, q := answerSliding(p, s, now, n)
			return Verdict{a, q}, max(now, p.latest(s))
		},
		clone: func() window {
			heir := new(S)
			inherit(heir, s)
			return onState(p, heir, inherit, period, step, cell)
		},
		quota:  p.Limit(),
		period: period,
		step:   step,
		cell:   cell,
	}
}

func onCounters(p *SlidingCounters, step int64) window {
	return onState(p, new(Counters), (*Counters).Inherit, p.cell.by, step, p.number)
}

func onCells(p *SlidingCells, period, step int64) window {
	return onState(p, new(Counters), (*Counters).Inherit, period, step, p.number)
}

func onLog(p *SlidingLog) window {
	return onState(p, new(Timestamps), (*Timestamps).Inherit, p.period<<p.shift, 1<<p.shift, func(at int64) int64 { return at })
}

// windowRate covers quotas from 1 to 20 and periods from 1 step to 10 days.
func windowRate(rnd *rand.Rand) Rate {
	for {
		r := per(1+rnd.Int64N(20), time.Duration(1+rnd.Int64N(1<<(1+rnd.IntN(49)))))
		if rnd.IntN(4) == 0 {
			r.Resolution = Microseconds
			r.Period = r.Period / time.Microsecond * time.Microsecond
		}
		if r.Validate() == nil {
			return r
		}
	}
}

func anyCells(rnd *rand.Rand, r Rate) int { return 1 + rnd.IntN(int(min(12, r.Period/r.step))) }

// windowKinds are the windows with their bounds: the most in any window that is
// shorter than the period, and in any one cell.
var windowKinds = []struct {
	name     string
	make     func(rnd *rand.Rand, r Rate) window
	anywhere func(quota int64) int64
}{
	{"fixed", func(rnd *rand.Rand, r Rate) window {
		return onWord(must(NewFixedWindow(r, rnd.Int64N(1<<50), false)), 0, 0)
	}, func(q int64) int64 { return 2 * q }},
	{"calendar", func(rnd *rand.Rand, r Rate) window {
		r.Resolution = Nanoseconds
		r.Period = []time.Duration{Day, Week}[rnd.IntN(2)]
		zone := []string{"Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia"}[rnd.IntN(3)]
		w := onWord(must(NewCalendarWindow(r, calendar(r.Period, zone, rnd.Int64N(2)), time.Unix(1.3e9+rnd.Int64N(1e8), 0))), 0, 0)
		w.period = ticks(r.Period) / 2 // no window is shorter
		return w
	}, func(q int64) int64 { return 2 * q }},
	{"two counters", func(_ *rand.Rand, r Rate) window {
		return onCounters(must(NewSlidingCounters(r, r.stepTicks())), r.stepTicks())
	}, func(q int64) int64 { return 2*q - 1 }},
	{"cells", func(rnd *rand.Rand, r Rate) window {
		return onCells(must(NewSlidingCells(r, anyCells(rnd, r), r.stepTicks())), r.Ticks(r.Period), r.stepTicks())
	}, func(q int64) int64 { return q }},
	{"log", func(_ *rand.Rand, r Rate) window {
		return onLog(must(NewSlidingLog(r)))
	}, func(q int64) int64 { return q }},
}

// stepClock makes a clock read whole steps, as the real one does, and later than
// the beginning of a fixed window's time.
func stepClock(clock func() int64, step int64) func() int64 {
	return func() int64 { return year + clock()&^(step-1) }
}

func admissions(rnd *rand.Rand, w window, clock func() int64) (all []admission) {
	for range 14 {
		cost := 1 + rnd.Int64N(min(w.quota, 5))
		if rnd.IntN(8) == 0 {
			cost = w.quota
		}
		if v, at := w.decide(clock(), cost); v.Allowed {
			all = append(all, admission{at, cost})
		}
	}
	return all
}

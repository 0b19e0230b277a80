package sim

import "time"

// Result is the result of one run.
type Result struct {
	// Goodput is the number of answers within the SLO, as a share of the answers
	// that a server with free rejections can give; Possible is the share that a
	// server can give whose rejections cost time, the most that a gate can reach.
	Goodput, Possible float64
	P50, P99          time.Duration // of the admitted requests that ended in the window
	Rejected          float64       // share of the arrivals in the window
	// Before and After are the shares that were rejected while the load was
	// calm: from 2 s on to the window, and from 2 s after the window to the end.
	// Under a steady load Before is the share that was rejected in the window.
	Before, After float64
	// Converged is the time from the start of the window until the goodput reached
	// 0.93 of the possible one, and Recovered the time from its end until 0.95 of
	// the arrivals were answered within the SLO; each for 2 s, or Unreached.
	Converged, Recovered time.Duration
	Classes              [len(classShares)]float64 // share of each answered within the SLO
	Tenants              []Share
	Trace                *Trace // only on request
}

// Unreached is the time of an event that did not happen.
const Unreached = time.Duration(never)

// Trace is a run over time.
type Trace struct {
	Goodput []float64       // of capacity, for each second
	P99     []time.Duration // for each second
	Limits  []int           // for each 100 ms; 0: no limit
}

const (
	settle     = 2 * time.Second // a state counts if it lasts so long
	convergeTo = 0.93
	recoverTo  = 0.95
)

func (w *world) result() Result {
	s, end := &w.stats, w.Load.End()
	span := (w.To - w.From).Seconds()
	all := s.sum(w.From, w.To)
	fits := w.Load.carried(w.From, w.To, 0) * w.Capacity() * span
	r := Result{
		Goodput:  float64(all.good) / fits,
		Possible: w.Load.carried(w.From, w.To, w.rho()) / w.Load.carried(w.From, w.To, 0),
		P50:      s.times.quantile(.5), P99: s.times.quantile(.99),
		Rejected: share(all.rejected, all.arrived),
	}
	if !w.Steady() {
		t := s.sum(settle, w.From)
		r.Before = share(t.rejected, t.arrived)
		t = s.sum(w.To+settle, end)
		r.After = share(t.rejected, t.arrived)
		r.Converged = w.first(w.From, w.To, func(t tally, at time.Duration) bool {
			possible := w.Load.carried(at, at+settle, w.rho()) * w.Capacity() * settle.Seconds()
			return float64(t.good) >= convergeTo*possible
		})
		r.Recovered = w.first(w.To, end, func(t tally, _ time.Duration) bool {
			return float64(t.pleased) >= recoverTo*float64(t.arrived)
		})
	} else {
		r.Before = r.Rejected
	}
	for i := range r.Classes {
		r.Classes[i] = share(s.served[i], s.asked[i])
	}
	r.Tenants = w.shares()
	if s.seconds != nil {
		r.Trace = w.trace()
	}
	return r
}

// first is the time from the instant from to the first 2 s that are good. The last
// arrivals cannot have been answered yet and are left out.
func (w *world) first(from, to time.Duration, good func(tally, time.Duration) bool) time.Duration {
	for at := from; at+settle+w.SLO <= to; at += bin {
		if good(w.stats.sum(at, at+settle), at) {
			return at - from
		}
	}
	return Unreached
}

func (w *world) trace() *Trace {
	t := &Trace{Limits: w.stats.limits}
	for i := range int(w.Load.End() / time.Second) {
		at := time.Duration(i) * time.Second
		t.Goodput = append(t.Goodput, float64(w.stats.sum(at, at+time.Second).good)/w.Capacity())
		t.P99 = append(t.P99, w.stats.seconds[i].quantile(.99))
	}
	return t
}

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

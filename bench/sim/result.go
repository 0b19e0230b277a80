package sim

import "time"

// Result is the result of one run.
type Result struct {
	// Goodput is the number of answers within the SLO, as a share of the answers
	// that a server with free rejections can give; Possible is the share that a
	// server can give whose rejections cost time, the most that a gate can reach.
	Goodput, Possible float64
	P99               time.Duration // of the admitted requests that ended in the window
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
	Seconds              []float64 // goodput of each second, of the capacity
	Limits               []int     // for each 100 ms; 0: no limit
}

// Unreached is the time of an event that did not happen.
const Unreached = time.Duration(never)

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
		P99:      quantile(.99, s.times),
		Rejected: share(all.rejected, all.arrived),
		Tenants:  w.shares(), Limits: s.limits,
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
	for at := time.Duration(0); at+time.Second <= end; at += time.Second {
		r.Seconds = append(r.Seconds, float64(s.sum(at, at+time.Second).good)/w.Capacity())
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

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

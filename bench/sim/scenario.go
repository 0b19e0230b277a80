package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Scenario is one server under one load.
type Scenario struct {
	ID    string // short, for tables and file names
	About string
	Model any // Sharing, Workers, Remote or GoScheduler
	Host
	Service Service
	// Admit and Reject are the processor time of a request beside its work, and of
	// a rejection.
	Admit, Reject time.Duration
	Load          Load
	// Burst is the number of requests that arrive at once, at regular distances;
	// 0: single requests, at exponential distances.
	Burst int
	// Clients is the number of clients of a closed loop, each of which sends a
	// request as soon as it has the answer to the last one. Load then only gives
	// the duration. 0: an open loop.
	Clients int
	// From and To is the window in which goodput and times are measured. Rejections
	// outside it, after the first seconds, are needless, because the load is calm.
	From, To time.Duration
	SLO      time.Duration // a later answer is useless
	// Patience is the time after which clients give up, 0: never. The server
	// continues the work.
	Patience   time.Duration
	Retries    int  // retries of a client after a rejection or after giving up
	Priorities bool // requests have classes, and limiters use them
	// Tenants share the load; nil: one. Fair makes limiters divide the capacity between
	// them.
	Tenants []Tenant
	Fair    bool
	Target  Target
}

// Target is the goal for a limiter. Zero means the general goal: a goodput of 0.93 of
// the possible one, and a p99 within the SLO.
type Target struct {
	Goodput float64
	P99     time.Duration
}

// Steady reports whether the load is constant: then there is no convergence or
// recovery, and all rejections are needless.
func (s *Scenario) Steady() bool { return s.From < settle }

// Host is where the server runs.
type Host struct {
	Cores int
	// Procs is GOMAXPROCS, 0: Cores.
	Procs int
	// Neighbour is the share of each core that other processes take.
	Neighbour float64
	// Greedy is a neighbour of low priority that uses all idle time. It shows only
	// in the use of the processor.
	Greedy bool
	Pauses Pauses
	// Blind is a runtime that does not count runnable goroutines.
	Blind bool
}

// Pauses are times in which the process is stopped, at exponential distances of mean
// Every, with uniformly distributed lengths.
type Pauses struct{ Every, Shortest, Longest time.Duration }

// Service is the need of a request: processor time, then waiting.
type Service struct {
	CPU   time.Duration // mean
	Sigma float64       // of the logarithm, for lognormal times; 0: constant
	// Exponential draws exponential times instead, as in queueing theory.
	Exponential bool
	// Rare is another processor time, that one of so many requests needs.
	Rare     time.Duration
	RareEach int
	IO       time.Duration
}

func (s Service) draw(rng *rand.Rand) (cpu, io int64) {
	x := float64(s.CPU)
	switch {
	case s.Exponential:
		x *= rng.ExpFloat64()
	case s.Sigma > 0:
		x *= math.Exp(s.Sigma*rng.NormFloat64() - s.Sigma*s.Sigma/2)
	case s.RareEach > 0 && rng.IntN(s.RareEach) == 0:
		x = float64(s.Rare)
	}
	return max(int64(x), 1), int64(s.IO)
}

// mean is the mean processor time.
func (s Service) mean() float64 {
	if s.RareEach > 0 {
		return float64(s.CPU) + (float64(s.Rare)-float64(s.CPU))/float64(s.RareEach)
	}
	return float64(s.CPU)
}

// cores is the average number of cores for the process.
func (s *Scenario) cores() float64 {
	cores := float64(s.Cores)
	if m, ok := s.Model.(Sharing); ok && m.Quota > 0 {
		cores = m.Quota
	}
	cores *= 1 - s.Neighbour
	if p := s.Pauses; p.Every > 0 {
		paused := float64(p.Shortest+p.Longest) / 2
		cores *= float64(p.Every) / (float64(p.Every) + paused)
	}
	return cores
}

// Capacity is the number of requests per second that the server can serve without
// rejections.
func (s *Scenario) Capacity() float64 {
	return s.cores() / (s.Service.mean() + float64(s.perAdmission())) * 1e9
}

// perAdmission is the part of an admission that the cores of the bottleneck pay.
func (s *Scenario) perAdmission() time.Duration {
	if _, ok := s.Model.(Remote); ok {
		return 0
	}
	return s.Admit
}

// rho is the cost of a rejection as a share of the cost of a request.
func (s *Scenario) rho() float64 {
	if _, ok := s.Model.(Remote); ok {
		return 0
	}
	return float64(s.Reject) / (s.Service.mean() + float64(s.Admit))
}

// OnCores is the scenario on another number of cores, for a shorter time if it
// would have more requests than most; see shorten. The quota and the cost of contention
// scale with the cores.
func (s Scenario) OnCores(n, most int) Scenario {
	if m, ok := s.Model.(Sharing); ok {
		m.Quota *= float64(n) / float64(s.Cores)
		m.Collapse *= float64(s.Cores) / float64(n)
		s.Model = m
	}
	if s.Procs > 0 {
		s.Procs = s.Procs * n / s.Cores
	}
	s.Cores = n
	return s.shorten(most)
}

// shortest is the least time of calm before an overload, or of a steady load.
const shortest = 4 * time.Second

// shorten makes the load shorter until it has at most that many requests, or is at its
// minimum, which a strategy needs to learn before the overload.
func (s Scenario) shorten(most int) Scenario {
	all := s.Load.mean(0, s.Load.End()) * s.Load.End().Seconds() * s.Capacity()
	by := max(float64(most)/all, float64(shortest)/float64(s.Load[0].Until))
	if by >= 1 {
		return s
	}
	scale := func(d time.Duration) time.Duration {
		return (time.Duration(float64(d) * by)).Round(100 * time.Millisecond)
	}
	load := make(Load, len(s.Load))
	for i, part := range s.Load {
		load[i] = Stretch{scale(part.Until), part.From, part.To}
	}
	s.Load, s.From, s.To = load, scale(s.From), scale(s.To)
	return s
}

package admin

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/keyfunc"
)

// adaptState is the panel of an adaptive limiter.
type adaptState struct {
	Name     string          `json:"name"`
	Limit    int             `json:"limit"`
	InFlight int             `json:"in_flight"`
	Waiting  int             `json:"waiting"`
	RTT      seconds         `json:"rtt"`  // smoothed time of a success; 0: none yet
	Pace     float64         `json:"pace"` // successes a second that the limit lets through at that time; 0: no limit
	Parts    []strategyState `json:"strategies"`
	Denied   []cause         `json:"denied"` // since the limiter was made
	// One value for each second from From until before To, -1 where unknown or,
	// of the limits, where there is none.
	InFlights []int `json:"in_flights"`
	Limits    []int `json:"limits"`
	// The tenants that asked for the most in an overload of the last minute.
	Tenants []tenantState `json:"tenants"`
}

type tenantState struct {
	Hash     string  `json:"hash"`
	Key      string  `json:"key"`
	Asked    float64 `json:"asked"`    // its part of all that was asked for
	Admitted float64 `json:"admitted"` // the part of that which was admitted
	Served   float64 `json:"served"`   // its part of all that was admitted
}

type strategyState struct {
	Name       string  `json:"name"`
	Limit      int     `json:"limit"`
	Overloaded bool    `json:"overloaded"`
	Cause      string  `json:"cause"`
	Signal     string  `json:"signal"`
	Level      float64 `json:"level"`
	Known      bool    `json:"known"`
	Estimate   string  `json:"estimate"` // of strategies that keep one
}

// processState is the state of the scheduler of this process.
type processState struct {
	Runnable   int `json:"runnable"` // goroutines that are ready and do not run
	Goroutines int `json:"goroutines"`
	Procs      int `json:"procs"`
}

func (s *state) addAdaptive(c *config) {
	for _, l := range c.adaptive {
		e := l.limiter.Explain()
		st := adaptState{
			Name: l.name, Limit: e.Limit, InFlight: e.InFlight, Waiting: e.Waiting, RTT: seconds(e.RTT),
			Parts: []strategyState{}, Denied: causes(e.Denied),
		}
		if e.RTT > 0 && e.Limit < noLimit {
			st.Pace = float64(e.Limit) / e.RTT.Seconds()
		}
		for _, p := range e.Strategies {
			estimate := ""
			if p.Estimate != nil {
				estimate = p.Estimate.String()
			}
			st.Parts = append(st.Parts, strategyState{p.Name, p.Limit, p.Overloaded, p.Cause, p.Signal, p.Level, p.Known, estimate})
		}
		st.InFlights, st.Limits = l.gauge.read(s.From, s.To)
		hideNoLimit(st.Limits)
		st.Tenants = c.tenants(l.limiter)
		s.Adaptive = append(s.Adaptive, st)
	}
	if len(c.adaptive) > 0 {
		s.Process = process()
	}
}

// tenantsShown is the number of tenants in a panel.
const tenantsShown = 10

// tenants are the heaviest tenants of a limiter with fair shares.
func (c *config) tenants(l *adaptive.Limiter) []tenantState {
	all := []tenantState{}
	for _, t := range l.Tenants(tenantsShown) {
		st := tenantState{Hash: hashText(keyfunc.Hash(t.Tenant)), Asked: t.Asked, Admitted: t.Admitted, Served: t.Served}
		if c.clear {
			st.Key = clip(t.Tenant)
		}
		all = append(all, st)
	}
	return all
}

// noLimit is the limit of a limiter that sees no reason for one.
const noLimit = math.MaxInt32

// hideNoLimit makes -1 of limits that mean none: drawn, they would
// flatten the curve of requests in flight.
func hideNoLimit(limits []int) {
	for i, n := range limits {
		if n == mostGauged {
			limits[i] = -1
		}
	}
}

type cause struct {
	Name string `json:"name"`
	N    uint64 `json:"n"`
}

func causes(d adaptive.Denials) []cause {
	return []cause{
		{"limit", d.Limit}, {"deadline", d.Deadline}, {"queue", d.Queue}, {"processor", d.Processor}, {"latency", d.Latency},
		{"hang", d.Hang}, {"priority", d.Priority}, {"share", d.Share}, {"never fits", d.Never},
	}
}

func process() *processState {
	samples := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(samples)
	value := func(i int) int {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return int(samples[i].Value.Uint64())
	}
	return &processState{value(0), value(1), runtime.GOMAXPROCS(0)}
}

// storeState is the panel of a store on Redis.
type storeState struct {
	Name      string   `json:"name"`
	State     string   `json:"state"` // healthy, degraded, far or probing
	RoundTrip int64    `json:"round_trip_ms"`
	Timeout   int64    `json:"timeout_ms"`
	Since     int64    `json:"since"` // Unix time in ms at which it was not healthy any more; 0: it is
	Percent   int      `json:"percent"`
	Nodes     int      `json:"nodes"`
	Away      int      `json:"away"`
	Instances int      `json:"instances"`
	Counted   bool     `json:"counted"`
	Fallback  string   `json:"fallback"`
	Denied    int      `json:"denied"`
	Most      int      `json:"denied_most"`
	Blocks    int      `json:"blocks"`
	Policies  []string `json:"policies"` // none: all
	// 0 healthy, 1 degraded, 2 probing; -1 where unknown.
	States []int `json:"states"`
}

// outage is since when a store is not healthy, as seen once a second while there is traffic.
type outage struct{ since atomic.Int64 } // Unix time in ms; 0: it is healthy

func (o *outage) note(away bool) {
	if !away {
		o.since.Store(0)
	} else {
		o.since.CompareAndSwap(0, time.Now().UnixMilli())
	}
}

// stateWords name the states of a breaker for people: while it ramps, a growing
// part of the calls tries Redis.
var stateWords = [...]string{"healthy", "degraded", "probing"}

func (s *store) state(from, to uint32) storeState {
	st := s.store.Stats()
	out := storeState{
		Name: s.name, State: "unknown", Percent: st.Percent, Nodes: st.Nodes, Away: st.Away,
		Instances: st.Instances, Counted: st.Counted, Fallback: st.Fallback.String(),
		Denied: st.Denied, Most: st.DeniedMax, Blocks: st.Blocks, Policies: s.policies,
	}
	if int(st.Phase) < len(stateWords) {
		out.State = stateWords[st.Phase]
	}
	if st.Far() {
		out.State, out.RoundTrip, out.Timeout = "far", st.RoundTrip.Milliseconds(), st.Timeout.Milliseconds()
	}
	out.States, _ = s.gauge.read(from, to)
	out.Since = s.outage.since.Load()
	return out
}

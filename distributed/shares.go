package distributed

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// Shares divides one token bucket for each key between children with floors, in Redis; see
// [shares.Shares], whose bounds hold for all instances together.
type Shares struct {
	children map[string]*Limiter
	other    *Limiter
}

// Shares divides r between at most 63 children by name. floors are units in a period of r,
// together at most the count of r; the options are [algo.Burst] (default: the count of r),
// and, for the decisions without Redis, [algo.MaxKeys], [algo.DenyNew] and [algo.Clock].
//
// A decision is one step and one round trip. It counts time in microseconds and rounds
// nothing. While Redis is away each instance divides its part of rate and burst
// in the same way. Instances with other floors or another rate on the same name decide
// locally until the key has expired; the event is [KeyFault]. The limit cannot be changed
// in use.
func (s *Store) Shares(name string, r algo.Rate, floors map[string]int64, opts ...algo.Option) (*Shares, error) {
	spec, err := algo.Spec{Rate: r}.With(opts...)
	if err == nil && spec.Given("wait") {
		err = fmt.Errorf("does not take the option MaxWait, only Burst, MaxKeys, DenyNew")
	}
	if err != nil {
		return nil, fmt.Errorf("distributed: shares %q: %w", name, err)
	}
	names := slices.Sorted(maps.Keys(floors))
	units := make([]int64, 0, len(names)+1)
	for _, child := range names {
		units = append(units, floors[child])
	}
	burst := spec.Burst
	if !spec.Given("burst") {
		burst = r.Count
	}
	d, err := decide.NewShares(microseconds(r), burst, append(units, 0))
	if err != nil {
		return nil, fmt.Errorf("distributed: shares %q: %w", name, err)
	}
	common := &sharesLimit{decide: d, spec: spec, burst: burst, floors: floors, compiled: sharesScript(d)}
	all := &Shares{children: make(map[string]*Limiter, len(names))}
	for i, child := range append(names, "") {
		l, err := s.shareOf(name, &share{common, &decide.Share{Shares: d, Child: i}, child})
		if err != nil {
			return nil, err
		}
		if i == len(names) {
			all.other = l
		} else {
			all.children[child] = l
		}
	}
	return all, nil
}

// shareOf makes the limiter of a child. All children share name, and so one key.
func (s *Store) shareOf(name string, c *share) (*Limiter, error) {
	l, err := s.prepare("shares", name)
	if err != nil {
		return nil, err
	}
	l.replace(c)
	return s.register(l)
}

// Child returns the limiter of the child name. A child without a floor gets only loans.
// [Limiter.Reset] and [Limiter.Ban] affect all children of a key.
func (s *Shares) Child(name string) *Limiter {
	if c, ok := s.children[name]; ok {
		return c
	}
	return s.other
}

// sharesLimit holds the common parameters of the children.
type sharesLimit struct {
	decide   *decide.Shares
	spec     algo.Spec
	burst    int64
	floors   map[string]int64
	compiled *remote.Script

	mu    sync.Mutex
	of    instances // for which parts were made
	parts *shares.Shares
}

// share is one child; shares.lua decides for it.
type share struct {
	*sharesLimit
	child *decide.Share
	name  string // empty: the child without a floor
}

// sharesScript returns the script with the parameters of d as constants.
func sharesScript(d *decide.Shares) *remote.Script {
	p := d.Params()
	var b strings.Builder
	fmt.Fprintf(&b, "local PERIOD, REST, COMMON = %d, %d, %d\nlocal FLOORS, DEPTHS = {%s}, {%s}\n",
		p.Period, p.Rest, p.Common, list(p.Floors), list(p.Depths))
	h := fnv.New32a()
	_, _ = h.Write([]byte(b.String()))
	fmt.Fprintf(&b, "local HASH = '%08x'\n", h.Sum32())
	return remote.NewScript("shares", func() string { return prelude() + b.String() + lua("shares") }, 7, len(p.Floors)+3)
}

func list(numbers []int64) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

func (c *share) script() *remote.Script { return c.compiled }

func (c *share) maxCost() int64 { return c.child.Limit() }

func (c *share) index() int64 { return int64(c.child.Child) + 1 }

func (c *share) acquireArgs(_ string, n int64) remote.Args {
	return remote.Args{opAcquire, c.index(), possible(n, c.maxCost())}
}

func (c *share) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	voided, lacks := a.Reply[0], a.Reply[1:len(a.Reply)-1]
	if a.Flag() == flagBanned {
		return whileBanned(c, n, voided-a.Now), algo.Handle{}
	}
	s := c.decide.State(a.Now, lacks[0], lacks[1:])
	_, answer, quota := c.child.Answer(s, a.Now, n)
	return decision(answer, quota), handle(c.child.Charge(s, a.Now, n, 0), voided)
}

func (c *share) refundArgs(h algo.Handle, n int64) remote.Args {
	first := h.State[1] // units beyond the first cost are not given back
	return remote.Args{opRefund, c.index(), h.At, h.State[2], h.State[0], min(h.N, first), min(h.N-n, first)}
}

func (c *share) forceArgs(_ string, _ algo.Handle, n int64) remote.Args {
	return remote.Args{opForce, c.index(), min(n, 3*c.burst)}
}

func (c *share) resetArgs(string) remote.Args { return remote.Args{opReset, c.index()} }

func (c *share) describe() algo.Description {
	return algo.Description{Rate: c.spec.Rate, Quota: c.child.Limit(), Window: c.child.FillTime(microseconds(c.spec.Rate))}
}

// local divides rate and burst by the instances, then between the children.
func (c *share) local(of instances, _ algo.Limiter) algo.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil || c.of != of {
		opts := slices.DeleteFunc(c.spec.Options(), func(o algo.Option) bool { return o.String() == "Burst" })
		enough := min(2*int64(len(c.floors)+1), c.burst) // a unit for each child
		opts = append(opts, algo.Burst(max(of.part(c.burst), enough)))
		rate := c.spec.Rate
		rate.Period = min(rate.Period*time.Duration(of.count), decide.MaxSpan)
		c.parts, c.of = algo.Must(shares.New(rate, c.floors, opts...)), of
	}
	return &portion{Limiter: c.parts.Child(c.name), clock: c.spec.Clock(), each: float64(c.spec.Rate.Period) / float64(c.spec.Rate.Count) * float64(of.count), saving: map[string]time.Time{}}
}

package adaptive

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// WithPriorities makes the limiter deny requests of a lower [Class] before requests
// of a higher one, and within a class some keys before others.
//
// Each class has 100 cohorts. A keyed hash puts every key into a cohort, a different
// one every hour, so that overload does not always hit the same users, and all
// requests of one user are treated alike. Requests with the empty key are spread at
// random. From the classes and cohorts of the recent arrivals the limiter derives
// the lowest priority that it can admit, and denies requests below it while more
// than three quarters of the limit are taken. Without denials that priority falls
// by 2 % of the arrivals every 100 ms.
//
// The method is DAGOR (Zhou et al., Overload Control for Scaling WeChat
// Microservices, SoCC 2018), with this limiter's own measure of capacity.
func WithPriorities() Option {
	return Option{"WithPriorities", func(s *settings) { s.priorities = true }}
}

const (
	cohorts        = 100
	lowestPriority = int64(classes)*cohorts - 1

	shedEvery       = int64(100 * time.Millisecond)
	shedMinArrivals = 20         // arrivals that show the distribution
	shedPatience    = int64(1e9) // after which fewer must do
	cohortLifetime  = int64(3600e9)
	shedRelax       = 0.02 // of the arrivals, per turn without a denial
	shedMemory      = 0.7  // weight of the past distribution per turn
	busyParts       = 4    // shed above 3 of these parts of the limit
)

// priorityShedder denies by priority: 0 is the first cohort of Critical, 499 the
// last of Sheddable.
type priorityShedder struct {
	limiter   *Limiter
	seed      maphash.Seed
	threshold atomic.Int64 // last priority that is not shed
	epoch     atomic.Uint64
	next      atomic.Int64 // instant of the next turn
	passed    atomic.Uint64
	arrived   [lowestPriority + 1]atomic.Uint32

	turning sync.Mutex // guards what follows
	turned  int64
	before  shedCounts
	share   float64 // of the arrivals that may try for a slot
	recent  [lowestPriority + 1]float64
}

// shedCounts are totals since the start.
type shedCounts struct{ passed, shed, denied uint64 }

func newPriorityShedder(l *Limiter) *priorityShedder {
	p := &priorityShedder{limiter: l, seed: maphash.MakeSeed(), share: 1, turned: l.machine.Now()}
	p.threshold.Store(lowestPriority)
	return p
}

// sheds reports whether a request is denied to keep slots for others.
func (p *priorityShedder) sheds(ctx context.Context, key string) bool {
	priority := p.priority(ctx, key)
	p.arrived[priority].Add(1)
	return priority > p.threshold.Load() && p.limiter.busy()
}

// priority orders requests by class and cohort.
func (p *priorityShedder) priority(ctx context.Context, key string) int64 {
	var h uint64
	if key == "" {
		h = p.limiter.machine.Rand()
	} else {
		h = maphash.String(p.seed, key) ^ p.epoch.Load()
		h *= 0x9e3779b97f4a7c15
		h ^= h >> 32
		h *= 0x9e3779b97f4a7c15
	}
	cohort, _ := bits.Mul64(h, cohorts)
	return int64(ClassFrom(ctx))*cohorts + int64(cohort)
}

// admitted counts an admission and, when it is time, moves the threshold. Denials
// do not move it, because they do not read the clock: while nothing is admitted
// there is nothing to choose.
func (p *priorityShedder) admitted(at int64) {
	p.passed.Add(1)
	if at < p.next.Load() || !p.turning.TryLock() {
		return
	}
	defer p.turning.Unlock()
	p.turn(at)
}

// turn takes in the time since the last turn and moves the threshold.
func (p *priorityShedder) turn(at int64) {
	p.next.Store(at + shedEvery)
	denials := &p.limiter.denials
	is := shedCounts{p.passed.Load(), denials[byPriority].Load(),
		denials[byLimit].Load() + denials[byRunQueue].Load() + denials[byFullQueue].Load() + denials[byLongWait].Load()}
	passed, denied := float64(is.passed-p.before.passed), float64(is.denied-p.before.denied)
	all := passed + denied + float64(is.shed-p.before.shed)
	if all < shedMinArrivals && at-p.turned < shedPatience {
		return
	}
	p.before, p.turned = is, at
	p.epoch.Store(uint64(at / cohortLifetime))
	p.share = nextShare(p.share, passed, denied, all)
	p.threshold.Store(p.quantile(p.share))
}

// nextShare is the share of the arrivals that may try for a slot. After denials it
// moves half way towards the share that got one.
func nextShare(share, passed, denied, all float64) float64 {
	if denied > 0 && all > 0 {
		return min(share, (share+passed/all)/2)
	}
	return min(share+shedRelax, 1)
}

// quantile takes in the latest arrivals and returns the priority above which share
// of the recent ones lie.
func (p *priorityShedder) quantile(share float64) int64 {
	total := 0.0
	for i := range p.arrived {
		p.recent[i] = shedMemory*p.recent[i] + float64(p.arrived[i].Swap(0))
		total += p.recent[i]
	}
	if share >= 1 {
		return lowestPriority
	}
	sum := 0.0
	for i, n := range p.recent {
		if sum += n; sum >= share*total {
			return int64(i)
		}
	}
	return lowestPriority
}

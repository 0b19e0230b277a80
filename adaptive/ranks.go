package adaptive

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/machine"
)

// WithPriorities lets the limiter shed requests of a lower [Class] before those
// of a higher one, and within a class some keys before others.
//
// Each class has 100 cohorts; a keyed hash puts every key into one, a new one
// every hour, so that the same users are not always the ones to suffer, and one
// user's requests fare alike. Requests with the empty key are spread at random.
// From the classes and cohorts of the recent arrivals the limiter takes the
// rank down to which it could admit, and sheds those beyond it while more than
// three quarters of the limit are taken. When nothing has to be turned away any
// more the rank moves back by 2 % of the arrivals every 100 ms.
//
// The method is that of DAGOR (Zhou et al., Overload Control for Scaling WeChat
// Microservices, SoCC 2018), with the gate's own measure of what fits.
func WithPriorities() Option {
	return Option{"WithPriorities", func(s *settings) { s.priorities = true }}
}

const (
	cohorts    = 100
	lowestRank = int64(classes)*cohorts - 1

	rankEvery      = int64(100 * time.Millisecond)
	fewestArrivals = 20            // arrivals that say something about the distribution
	rankPatience   = int64(1e9)    // after which fewer must do
	cohortAge      = int64(3600e9) // a key's cohort lasts an hour
	rankRelax      = 0.02          // of the arrivals, each turn without a denial
	rankMemory     = 0.7           // what a turn leaves of the past distribution
	busyParts      = 4             // shed above 3 of these parts of the limit
)

// ranks sheds by priority: rank 0 is the first cohort of Critical, 499 the last
// of Sheddable.
type ranks struct {
	hash      machine.Hash
	threshold atomic.Int64 // the last rank that is not shed
	era       atomic.Uint64
	next      atomic.Int64 // when to look again
	passed    atomic.Uint64
	arrived   [lowestRank + 1]atomic.Uint32

	turning sync.Mutex // guards what follows
	last    int64
	before  counts
	share   float64 // of the arrivals that may try
	recent  [lowestRank + 1]float64
}

// counts is what has happened so far.
type counts struct{ passed, shed, denied uint64 }

func newRanks() *ranks {
	r := &ranks{hash: machine.NewHash(), share: 1, last: now()}
	r.threshold.Store(lowestRank)
	return r
}

// sheds reports whether a request is to be shed to keep places for others.
func (r *ranks) sheds(ctx context.Context, key string, l *Limiter) bool {
	rank := r.rank(ctx, key)
	r.arrived[rank].Add(1)
	return rank > r.threshold.Load() && l.busy()
}

// rank orders requests by class and cohort.
func (r *ranks) rank(ctx context.Context, key string) int64 {
	var h uint64
	if key == "" {
		h = machine.Rand()
	} else {
		h = r.hash.Of(key) ^ r.era.Load()
		h *= 0x9e3779b97f4a7c15
		h ^= h >> 32
		h *= 0x9e3779b97f4a7c15
	}
	cohort, _ := bits.Mul64(h, cohorts)
	return int64(ClassFrom(ctx))*cohorts + int64(cohort)
}

// admitted counts an admission and, when it is time, lets one caller take
// stock. Denials do not, because they do not read the clock: while nothing is
// admitted there is nothing to choose.
func (r *ranks) admitted(at int64, l *Limiter) {
	r.passed.Add(1)
	if at < r.next.Load() || !r.turning.TryLock() {
		return
	}
	defer r.turning.Unlock()
	r.turn(at, l)
}

// turn takes stock of what happened since the last turn and moves the
// threshold.
func (r *ranks) turn(at int64, l *Limiter) {
	r.next.Store(at + rankEvery)
	is := counts{r.passed.Load(), l.tally[byPriority].Load(),
		l.tally[byLimit].Load() + l.tally[byRunQueue].Load() + l.tally[byFullQueue].Load() + l.tally[byLongWait].Load()}
	passed, denied := float64(is.passed-r.before.passed), float64(is.denied-r.before.denied)
	all := passed + denied + float64(is.shed-r.before.shed)
	if all < fewestArrivals && at-r.last < rankPatience {
		return
	}
	r.before, r.last = is, at
	r.era.Store(uint64(at / cohortAge))
	r.share = nextShare(r.share, passed, denied, all)
	r.threshold.Store(r.quantile(r.share))
}

// nextShare is which share of the arrivals may try for a place: half way
// towards the share that got one, if some of those who tried did not.
func nextShare(share, passed, denied, all float64) float64 {
	if denied > 0 && all > 0 {
		return min(share, (share+passed/all)/2)
	}
	return min(share+rankRelax, 1)
}

// quantile takes in the latest arrivals and returns the rank up to which share
// of the recent ones lie.
func (r *ranks) quantile(share float64) int64 {
	total := 0.0
	for i := range r.arrived {
		r.recent[i] = rankMemory*r.recent[i] + float64(r.arrived[i].Swap(0))
		total += r.recent[i]
	}
	if share >= 1 {
		return lowestRank
	}
	sum := 0.0
	for i, n := range r.recent {
		if sum += n; sum >= share*total {
			return int64(i)
		}
	}
	return lowestRank
}

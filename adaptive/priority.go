package adaptive

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/wiring"
)

// WithPriorities makes the limiter deny requests of a lower [Class] before requests of a higher
// one, for any keys. It changes which requests are denied under overload, not how many:
//
//   - In front of the processor ([RunQueue], [Default]) a request that the queue denies passes on
//     credit, and the next one of a lower class that the queue admits is denied for it. The number
//     of passing requests is the same as without priorities, apart from the credit: at most a third
//     of the target ([WithTarget]) of work. So a class loses nothing while its demand and that of
//     the classes above fit the capacity.
//   - Slots in flight cannot be lent. A queue ([WithQueue]) serves the highest class first. A limit
//     that binds without overload too, such as [Fixed], needs one. Without a queue [Default]
//     reserves slots for a class that lacks some: so many that about 1 in 250 of its requests finds
//     none, at most a quarter of the limit (or five if that is more, up to half of it). They stay
//     reserved until the class has sent nothing under overload for 30 seconds. While more is in
//     flight than a lowered limit, and new work would still be in time, every second slot that ends
//     goes to a class that asks, highest first, except the lowest.
//
// Without overload, which ends a second after the last denial, no request is denied. Within a class
// all users are alike: see [WithFairShares].
func WithPriorities() Option { return wiring.With("WithPriorities", true) }

const (
	strainMemory = int64(time.Second)      // from the last denial to the end of the overload
	keepScale    = 256                     // one more slot kept for each denial, one less for 256 admissions
	keepFew      = 5                       // slots that may be kept of a small limit, but no more than half
	keptMemory   = int64(30 * time.Second) // from the last request of a rank until no slots are kept for it
	minSlack     = 2                       // requests
)

// rank orders requests: by class, and within a class by their tenants' use of
// their shares: a part of it, all of it, or more.
type rank int

const (
	places = 3
	ranks  = places * rank(classes)
)

// order decides which requests are denied; the strategy decides how many.
type order struct {
	priorities bool
	shares     *shares               // nil: tenants do not matter
	until      atomic.Int64          // end of the overload, unless there are more denials
	lent       [ranks]atomic.Int64   // price of passed requests for which no lower rank has been denied yet
	kept       [ranks]atomic.Int64   // slots to keep free of lower ranks, in 1/keepScale
	asked      [ranks]atomic.Int64   // instant of the rank's last request
	last       [classes]atomic.Int64 // instant at which a request of the class last found its slots

	freed  atomic.Int64  // slots that ended above the limit and are not inherited yet
	atRest atomic.Uint32 // requests that arrived while a processor was idle
}

func newOrder(priorities, shared bool, weight func(string) float64) *order {
	if !priorities && !shared {
		return nil
	}
	o := &order{priorities: priorities}
	if shared {
		o.shares = newShares(weight)
	}
	return o
}

// claim is the part of the capacity that a request is entitled to.
type claim struct {
	charge charge
	rank   rank
	price  int64   // what others give up for it: service, or one request without fair shares
	known  bool    // there was overload when it arrived, or it had to wait
	tenant string  // with fair shares
	turn   float64 // service of a unit in virtual time, see flows
	used   float64 // of its tenant's share, in virtual time
}

// strained reports whether there is overload.
func (o *order) strained(at int64) bool { return at < o.until.Load() }

// strain starts or prolongs the overload after a denial.
func (o *order) strain(at int64) {
	until := o.until.Load()
	if at >= until {
		for r := range ranks {
			o.lent[r].Store(0)
		}
	}
	if at+strainMemory-until > strainMemory/16 {
		o.until.Store(at + strainMemory)
	}
}

// claim computes the request's claim.
func (l *Limiter) claim(ctx context.Context, a *arrival) {
	o, c := l.order, &a.claim
	*c = claim{known: true, rank: places * rank(Normal), price: 1}
	if o.priorities {
		c.rank = places * rank(ClassFrom(ctx))
	}
	if o.shares != nil {
		c.tenant = a.key
		weight := o.shares.weightOf(a.key)
		c.charge, c.used = o.shares.charge(a.key, weight, a.n, a.at, l.working(l.inFlight.Load()), l.mean.Load())
		c.rank += c.charge.place()
		c.price = max(c.charge.expected(), 1)
		c.turn = float64(c.price) / float64(a.n) / weight
	}
	if asked := &o.asked[c.rank]; a.at-asked.Load() >= keptMemory {
		o.kept[c.rank].Store(0)
	}
	note(&o.asked[c.rank], a.at)
}

// keeps returns the number of slots that a request must leave free, and for which rank: a higher class
// or, if no lower class finds slots and the request's tenant is beyond its share, tenants within
// theirs.
func (o *order) keeps(c *claim, at int64) (slots int64, higher rank) {
	if !c.known {
		return 0, 0
	}
	above := c.rank
	if c.charge.within() || o.lowerFound(c.rank/places, at) {
		above -= c.rank % places
	}
	for r := range above {
		if kept := o.kept[r].Load() / keepScale; kept > slots && at-o.asked[r].Load() < keptMemory {
			slots, higher = kept, r
		}
	}
	return slots, higher
}

// lowerFound reports whether a request of a lower class found its slots within strainMemory.
func (o *order) lowerFound(class rank, at int64) bool {
	for lower := class + 1; lower < rank(classes); lower++ {
		if last := o.last[lower].Load(); last > 0 && at-last < strainMemory {
			return true
		}
	}
	return false
}

// denied counts the denial of a request, unless all requests are alike.
func (o *order) denied(a *arrival) {
	if o == nil {
		return
	}
	o.strain(a.at)
	if a.charge.within() {
		o.shares.since.lacked.Add(a.charge.expected())
	}
	o.decided(a, false)
}

// lacked reserves more slots for the rank of a request that found none.
func (o *order) lacked(a *arrival, limit int64) {
	o.kept[a.rank].Store(min(o.kept[a.rank].Load()+keepScale*a.n, mostKept(limit)*keepScale))
}

func mostKept(limit int64) int64 { return max(limit/4, min(limit/2, keepFew)) }

// found reserves fewer slots for the rank of a request that found its own, and notes when.
func (o *order) found(a *arrival) {
	if kept := o.kept[a.rank].Load(); kept > 0 {
		o.kept[a.rank].Add(-min(a.n, kept))
	}
	note(&o.last[a.rank/places], a.at)
}

// note stores the instant at, unless word is close to it: many requests share word.
func note(word *atomic.Int64, at int64) {
	if at-word.Load() > strainMemory/16 {
		word.Store(at)
	}
}

// decided counts a decision for the list of the heaviest tenants. Without an order no claim is
// known.
func (o *order) decided(a *arrival, admitted bool) {
	if a.known && o.shares != nil {
		o.shares.heaviest.note(a.key, a.price, a.at, admitted)
	}
}

// forRank returns the cause of a denial in favor of a higher rank.
func forRank(r, higher rank) algo.Cause {
	if r/places == higher/places {
		return cause.Share
	}
	return cause.Priority
}

package adaptive

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/wiring"
)

// WithPriorities makes the limiter deny requests of a lower [Class] before requests
// of a higher one, for any keys. It changes which requests are denied under overload and
// not how many:
//
//   - In front of the processor ([RunQueue], [Default]) a request that the queue
//     denies passes on credit, and the next one of a lower class that the queue admits
//     is denied for it. The number of passing requests is the same as without
//     priorities, apart from the credit: at most a third of the target ([WithTarget])
//     of work. So a class loses nothing while the demand of it and the classes above
//     is below the capacity.
//   - Slots in flight cannot be lent. In a queue ([WithQueue]) the highest class is
//     served first. A limit that binds without overload too, such as [Fixed], needs one.
//     Without one, while a class lacks slots of [Default], some are kept free of the
//     classes below it: so many that about 1 in 250 of its requests finds none, at
//     most a quarter of the limit (or five if that is more, but no more than half). They stay
//     kept until the class has sent nothing under overload for 30 seconds. While more is in
//     flight than a limit that fell allows, and new work would still be in time, every second
//     slot that ends goes to the classes that ask but the lowest, the highest first.
//
// Without overload, which ends a second after the last denial, no request is denied.
// Within a class users are not distinguished: see [WithFairShares].
func WithPriorities() Option { return wiring.With("WithPriorities", true) }

const (
	strainMemory = int64(time.Second)      // from the last denial to the end of the overload
	keepScale    = 256                     // a slot more to keep for each denial, one less for 256 admissions
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

// order decides which requests are denied. How many is for the strategy to decide.
type order struct {
	priorities bool
	shares     *shares               // nil: tenants do not matter
	until      atomic.Int64          // end of the overload, unless there are more denials
	lent       [ranks]atomic.Int64   // price of passed requests for which no lower rank has been denied yet
	kept       [ranks]atomic.Int64   // slots to keep free of lower ranks, in 1/keepScale
	asked      [ranks]atomic.Int64   // instant of the rank's last request
	last       [classes]atomic.Int64 // instant at which a request of the class last found its slots

	freed  atomic.Int64  // slots that ended above the limit, and that nobody has inherited
	atRest atomic.Uint32 // requests that arrived while a processor had nothing to do
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
	price  int64   // the part that others give up for it: service, or a request without fair shares
	n      int64   // units
	known  bool    // there was overload when it arrived, or it had to wait
	tenant string  // with fair shares
	turn   float64 // service of a unit in virtual time, see flows
	used   float64 // of its tenant's share, in virtual time
}

// strained reports whether there is overload.
func (o *order) strained(at int64) bool { return at < o.until.Load() }

// strain notes a denial.
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

// claim returns the claim of n units.
func (o *order) claim(ctx context.Context, key string, n, at int64, l *Limiter) claim {
	c := claim{known: true, n: n, rank: places * rank(Normal), price: 1}
	if o.priorities {
		c.rank = places * rank(ClassFrom(ctx))
	}
	if o.shares != nil {
		c.tenant = key
		weight := o.shares.weightOf(key)
		c.charge, c.used = o.shares.charge(key, weight, n, at, l.working(l.inFlight.Load()), l.mean.Load())
		c.rank += c.charge.place()
		c.price = max(c.charge.expected(), 1)
		c.turn = float64(c.price) / float64(n) / weight
	}
	if asked := &o.asked[c.rank]; at-asked.Load() >= keptMemory {
		o.kept[c.rank].Store(0)
	}
	note(&o.asked[c.rank], at)
	return c
}

// pass decides on a request that all gates admit, or not. A denied request of a tenant may take
// longer than all completed ones, so its arrival counts as an equivalent number of usual ones.
func (l *Limiter) pass(c *claim, admits bool) algo.Cause {
	queues, mean := l.connections.queues, l.mean.Load()
	by := l.order.pass(c, admits, l.idle(), l.order.credit(queues, mean))
	if by != cause.None && l.order.shares != nil {
		for _, q := range queues {
			q.arrived.Add(max(c.price/max(mean, 1)-1, 0))
		}
	}
	return by
}

// pass decides on a request that all gates admit, or not. None: it passes. While a
// processor has nothing to do every other one passes: to deny all would waste it, to
// deny none would leave the credit unpaid.
func (o *order) pass(c *claim, admits, idle bool, most int64) algo.Cause {
	by := cause.Processor
	if admits && idle && o.atRest.Add(1)%2 == 0 {
		return cause.None
	}
	if admits {
		creditor := o.pay(c, most)
		if creditor < 0 {
			return cause.None
		}
		by = forRank(c.rank, creditor)
	}
	if o.lend(c, most) {
		return cause.None
	}
	return by
}

// idle reports whether a processor has nothing to do.
func (l *Limiter) idle() bool {
	for _, q := range l.connections.queues {
		if q.lastRead.Load() != 0 {
			return false
		}
	}
	return l.connections.queues != nil && l.working(l.inFlight.Load()) < int64(l.machine.Procs())
}

// credit is the price of the requests that may pass beyond those that the gates admit, if others
// are denied for it soon: half of the work that is done within the share of the target that may be
// spent in the queue.
func (o *order) credit(queues []*runQueue, mean int64) int64 {
	requests, service := int64(minSlack), int64(0)
	for i, q := range queues {
		r, s := max(q.drainable.Load()/2, minSlack), q.drain.Load()/2
		if i == 0 {
			requests, service = r, s
		}
		requests, service = min(requests, r), min(service, s)
	}
	if o.shares == nil {
		return requests
	}
	return max(requests*mean, service)
}

// pay denies a request for one of a higher rank that passed on credit, and returns that
// rank, the one with the largest debt; -1 without one. The worth of the denial beyond the debt
// is kept for the next, up to the credit: one request may be worth minutes, in which no
// request would be denied.
func (o *order) pay(c *claim, most int64) (creditor rank) {
	for {
		creditor, owed := rank(-1), int64(0)
		for r := range c.rank {
			if lent := o.lent[r].Load(); lent > owed {
				creditor, owed = r, lent
			}
		}
		if creditor < 0 || o.lent[creditor].CompareAndSwap(owed, max(owed-c.price, -most)) {
			return creditor
		}
	}
}

// lend lets a request pass in whose place lower ranks are denied later, with at most
// the credit.
func (o *order) lend(c *claim, most int64) bool {
	var lent int64
	for r := range c.rank + 1 {
		lent += o.lent[r].Load()
	}
	if c.rank == ranks-1 || lent >= most {
		return false
	}
	o.lent[c.rank].Add(min(c.price, most))
	return true
}

// keeps is the number of slots that a request must leave free, and for which rank: for higher classes,
// and, where no lower class finds any, for tenants within their share if its own is beyond.
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

// lowerFound reports whether a request of a lower class lately found its slots.
func (o *order) lowerFound(class rank, at int64) bool {
	for lower := class + 1; lower < rank(classes); lower++ {
		if last := o.last[lower].Load(); last > 0 && at-last < strainMemory {
			return true
		}
	}
	return false
}

// denied notes the denial of a request, if requests differ.
func (o *order) denied(c *claim, tenant string, at int64) {
	if o == nil {
		return
	}
	o.strain(at)
	if c.charge.within() {
		o.shares.since.lacked.Add(c.charge.expected())
	}
	o.decided(c, tenant, at, false)
}

// lacked keeps more slots for the rank of a request that found none.
func (o *order) lacked(c *claim, limit int64) {
	o.kept[c.rank].Store(min(o.kept[c.rank].Load()+keepScale*c.n, mostKept(limit)*keepScale))
}

func mostKept(limit int64) int64 { return max(limit/4, min(limit/2, keepFew)) }

// found notes that a request found its slots.
func (o *order) found(c *claim, at int64) {
	if !c.known {
		return
	}
	if kept := o.kept[c.rank].Load(); kept > 0 {
		o.kept[c.rank].Add(-min(c.n, kept))
	}
	note(&o.last[c.rank/places], at)
}

// note sets a word that many requests share to the instant at, if it is far from it.
func note(word *atomic.Int64, at int64) {
	if at-word.Load() > strainMemory/16 {
		word.Store(at)
	}
}

// decided counts a decision for the list of the heaviest tenants. No claim is known without
// an order.
func (o *order) decided(c *claim, tenant string, at int64, admitted bool) {
	if c.known && o.shares != nil {
		o.shares.heaviest.note(tenant, c.price, at, admitted)
	}
}

// forRank is the cause of a denial of a request to the benefit of a higher rank.
func forRank(r, higher rank) algo.Cause {
	if r/places == higher/places {
		return cause.Share
	}
	return cause.Priority
}

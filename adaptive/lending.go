package adaptive

import (
	"slices"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

// pass decides about a request; admits tells whether all gates admit it. A tenant beyond its share
// may have costly requests, so its denied arrival counts as an equivalent number of usual ones.
func (l *Limiter) pass(c *claim, admits bool) algo.Cause {
	mean := l.mean.Load()
	by := l.order.pass(c, admits, l.idle(), l.order.credit(l.processors, mean))
	if by != cause.None && l.order.shares != nil {
		for _, q := range l.processors {
			q.arrive(c.price/max(mean, 1) - 1)
		}
	}
	return by
}

// pass decides about a request: None admits it. While a processor is idle every second one passes:
// denying all would waste the processor, denying none would leave the credit unpaid.
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
	if slices.ContainsFunc(l.processors, (*runQueue).waiting) {
		return false
	}
	return l.processors != nil && l.working(l.inFlight.Load()) < int64(l.machine.Procs())
}

// credit returns how much work may pass against the gates, if others are denied for it soon: half
// of what the processors do within the queue's share of the target.
func (o *order) credit(queues []*runQueue, mean int64) int64 {
	requests, service := int64(minSlack), int64(0)
	for i, q := range queues {
		r, s := q.drains()
		r, s = max(r/2, minSlack), s/2
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

// pay denies a request to repay one of a higher rank that passed on credit, and returns the rank
// with the largest debt; -1 without debt. A denial worth more than the debt counts towards the
// next, up to the credit: otherwise one request worth minutes would let all others pass for
// minutes.
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

// lend admits a request on credit, at most the given amount; lower ranks are denied for it later.
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

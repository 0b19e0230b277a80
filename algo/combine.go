package algo

import "cmp"

func allAllowed(leases []Lease) bool {
	for i := range leases {
		if !leases[i].Allowed {
			return false
		}
	}
	return true
}

// combine merges the decisions of several limits into d, which is zero. It is a maximum, so
// that the order of the limits does not matter. Limits that are not in force count only for
// Delay and Trial, unless there is no other.
func combine(d *Decision, leases []Lease) {
	if len(leases) == 1 {
		*d = leases[0].Decision
		return
	}
	d.Allowed = allAllowed(leases)
	var shown *Decision
	for i := range leases {
		p := &leases[i].Decision
		d.Trial = max(d.Trial, p.Trial)
		if p.Allowed == d.Allowed {
			d.Delay = max(d.Delay, p.Delay)
		}
		if !p.InForce() {
			continue
		}
		d.RetryAfter, d.ResetAfter = max(d.RetryAfter, p.RetryAfter), max(d.ResetAfter, p.ResetAfter)
		if shown == nil || p.before(shown) {
			shown = p
		}
	}
	if shown == nil {
		for i := range leases {
			d.Source = max(d.Source, leases[i].Source)
		}
		return
	}
	d.Reason, d.Cause, d.Source = shown.Reason, shown.Cause, shown.Source
	d.Limit, d.Remaining, d.NextAfter = shown.Limit, shown.Remaining, shown.NextAfter
}

// before reports whether p rather than o describes both: the graver denial, then the one
// with less remaining.
func (p *Decision) before(o *Decision) bool {
	return cmp.Or(
		cmp.Compare(o.Reason, p.Reason),
		cmp.Compare(p.Remaining, o.Remaining),
		cmp.Compare(o.NextAfter, p.NextAfter), // one unit more needs both
		cmp.Compare(p.Limit, o.Limit),
		cmp.Compare(p.Source, o.Source),
		cmp.Compare(p.Cause, o.Cause),
	) < 0
}

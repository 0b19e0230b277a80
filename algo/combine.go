package algo

func allAllowed(leases []Lease) bool {
	for i := range leases {
		if !leases[i].Allowed {
			return false
		}
	}
	return true
}

// combine merges the decisions of several limits into d, which is zero. Limits that are not in
// force count only for Delay and Trial, unless there is no other.
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

// before reports whether p, not o, describes both: the graver denial, then the one with less
// remaining.
func (p *Decision) before(o *Decision) bool {
	switch {
	case p.Reason != o.Reason:
		return p.Reason > o.Reason
	case p.Remaining != o.Remaining:
		return p.Remaining < o.Remaining
	case p.NextAfter != o.NextAfter:
		return p.NextAfter > o.NextAfter
	case p.Limit != o.Limit:
		return p.Limit < o.Limit
	case p.Source != o.Source:
		return p.Source < o.Source
	}
	return p.Cause < o.Cause
}

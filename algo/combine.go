package algo

func allAllowed(leases []Lease) bool {
	for i := range leases {
		if !leases[i].Allowed {
			return false
		}
	}
	return true
}

// combine merges the decisions of several limits into d, which is zero. A
// denial is described by the limits that denied. Limits on trial that admit leave
// the description to the others.
func combine(d *Decision, leases []Lease) {
	if len(leases) == 1 {
		*d = leases[0].Decision
		return
	}
	d.Allowed, d.Source = allAllowed(leases), SourceOff
	shadowed, trial, found := false, false, false
	for i := range leases {
		p := &leases[i].Decision
		limits := p.limits()
		if limits {
			d.ResetAfter = max(d.ResetAfter, p.ResetAfter)
		}
		if p.Allowed && !d.Allowed {
			continue
		}
		switch {
		case !limits || (!d.Allowed && p.Reason < d.Reason):
		case !found || p.Remaining < d.Remaining || (!d.Allowed && p.Reason > d.Reason):
			d.Limit, d.Remaining, d.NextAfter, d.Source = p.Limit, p.Remaining, p.NextAfter, p.Source
			found = true
		case p.Remaining == d.Remaining: // one unit more needs both
			d.NextAfter = max(d.NextAfter, p.NextAfter)
		}
		if p.Source == SourceShadowed {
			trial = true
			shadowed = shadowed || p.Reason != Admitted || p.RetryAfter > 0 || p.Limit == 0
		}
		d.Banned = d.Banned || p.Banned
		d.Reason, d.Delay, d.RetryAfter = max(d.Reason, p.Reason), max(d.Delay, p.Delay), max(d.RetryAfter, p.RetryAfter)
	}
	if shadowed || trial && !found {
		d.Source = SourceShadowed
	}
}

// limits reports whether d enforces a limit and states it. An admission with a
// Limit of 0 does not state the remaining units.
func (d *Decision) limits() bool {
	return !d.Allowed || (d.Limit > 0 && d.Source != SourceOff && d.Source != SourceShadowed)
}

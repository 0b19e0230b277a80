package algo

// combine is the decision of several limits as one. A single one is itself.
func combine(leases []Lease) (d Decision) {
	if len(leases) == 1 {
		return leases[0].Decision
	}
	d.Allowed = allAllowed(leases)
	d.Source = SourceOff
	for i := range leases {
		p := &leases[i].Decision
		if d.Allowed || !p.Allowed {
			d.Reason = max(d.Reason, p.Reason)
			d.RetryAfter = max(d.RetryAfter, p.RetryAfter)
		}
		if d.Allowed {
			d.Delay = max(d.Delay, p.Delay)
		}
		if p.limits() {
			d.ResetAfter = max(d.ResetAfter, p.ResetAfter)
		}
	}
	d.tighten(leases)
	if d.Allowed {
		d.markShadowed(leases)
	}
	return d
}

// limits reports whether somebody is held to d, and to what: an admission with
// a Limit of 0 says nothing of what is left.
func (d *Decision) limits() bool {
	return !d.Allowed || (d.Limit > 0 && d.Source != SourceOff && d.Source != SourceShadowed)
}

// tighten takes what describes one limit from the one with the least left,
// among those that denied for d.Reason if d is a denial.
func (d *Decision) tighten(leases []Lease) {
	found := false
	for i := range leases {
		p := &leases[i].Decision
		if !p.limits() || (!d.Allowed && (p.Allowed || p.Reason != d.Reason)) {
			continue
		}
		switch {
		case !found || p.Remaining < d.Remaining:
			d.Limit, d.Remaining, d.NextAfter, d.Source = p.Limit, p.Remaining, p.NextAfter, p.Source
			found = true
		case p.Remaining == d.Remaining:
			// One unit more takes both.
			d.NextAfter = max(d.NextAfter, p.NextAfter)
		}
	}
}

// markShadowed says of an admission that a part let through what it would have
// denied: so would the whole.
func (d *Decision) markShadowed(leases []Lease) {
	for i := range leases {
		if leases[i].Source == SourceShadowed {
			d.Source = SourceShadowed
		}
	}
}

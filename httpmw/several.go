package httpmw

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// usualRules is how many policies need no allocation for their lists.
const usualRules = 4

// admitSeveral is admit for several rules.
func (g *guard) admitSeveral(lease *algo.Lease, w http.ResponseWriter, r *http.Request) bool {
	var roomForAll [usualRules]asking
	var roomForReqs [usualRules]algo.Request
	all, reqs := roomForAll[:0], roomForReqs[:0]
	for _, rule := range g.rules {
		a := asking{guard: g, rule: rule, w: w, r: r}
		key, n, v, err := rule.weigh(r, g.missing)
		a.key, a.n = key, n
		switch {
		case err != nil:
			if !a.undecided(err) {
				return false
			}
		case v == refuse:
			a.deny(keyless())
			return false
		case v == charge:
			all = append(all, a)
			reqs = append(reqs, algo.Request{Limiter: rule.limiter, Key: key, N: n})
		}
	}
	if len(reqs) == 0 {
		return true
	}
	var err error
	start := g.start()
	if *lease, err = algo.AcquireAll(r.Context(), reqs...); err != nil {
		stopSeveral(all, start)
		return g.undecidedSeveral(all, err)
	}
	parts := partsOf(lease, len(all))
	if lease.Allowed && lease.Delay > 0 {
		sleepOutSeveral(r.Context(), lease, all, parts)
	}
	stopSeveral(all, start)
	g.advertiseSeveral(w.Header(), all, parts)
	if !lease.Allowed {
		g.deniedSeveral(all, parts, &lease.Decision)
		return false
	}
	if g.observe != nil {
		g.tellSeveral(all, parts, nil)
	}
	return true
}

// partsOf returns the decision of each of n policies. A single one has no
// parts, or those of the composition that is its limiter.
func partsOf(lease *algo.Lease, n int) []algo.Decision {
	if n == 1 {
		return []algo.Decision{lease.Decision}
	}
	return lease.Parts()
}

// sleepOutSeveral is sleepOut, with what it means for the single policies.
func sleepOutSeveral(ctx context.Context, lease *algo.Lease, all []asking, parts []algo.Decision) {
	delay := lease.Delay
	sleepOut(ctx, lease)
	for i := range parts {
		d := &parts[i]
		switch {
		case lease.Allowed:
			elapse(d, delay)
		case d.Delay == delay:
			deny(d, delay)
		case d.Delay == 0: // its charge was given back
			d.Remaining = min(d.Remaining+all[i].n, d.Limit)
		}
	}
}

func (g *guard) undecidedSeveral(all []asking, err error) bool {
	result, f := g.judge(all[0].r, err), failed
	for i := range all {
		all[i].tellUndecided(result, &f, err)
	}
	return g.survive(all[0].w, all[0].r, all[0].rule.name, result, f, err)
}

// tellSeveral tells of an admission, or of the policies that had no room.
func (g *guard) tellSeveral(all []asking, parts []algo.Decision, f *refusal) {
	written := g.written(all[0].w.Header())
	for i := range all {
		a, part := &all[i], &parts[i]
		sent := written.of(a.rule, part)
		switch {
		case f == nil:
			a.tell(Allowed, part, sent, 0, nil)
		case !part.Allowed && !unknown(part):
			a.tellRefused(Denied, part, sent, f, nil)
		}
	}
}

func stopSeveral(all []asking, start time.Time) {
	for i := range all {
		all[i].stop(start)
	}
}

// unknown is the decision of a limit that could not be asked, after another one
// had denied.
func unknown(d *algo.Decision) bool { return !d.Allowed && d.Reason == algo.Admitted }

// deniedSeveral answers the denial d. Observers are told of the policies that
// had no room; the others are not charged.
func (g *guard) deniedSeveral(all []asking, parts []algo.Decision, d *algo.Decision) {
	w, r := all[0].w, all[0].r
	if gone(r) {
		for i := range all {
			all[i].tell(Canceled, &parts[i], nothing, 0, context.Canceled)
		}
		leave(w)
		return
	}
	status, t := http.StatusTooManyRequests, int64(0)
	var violated []string
	for i := range all {
		a, part := &all[i], &parts[i]
		if part.Allowed || unknown(part) {
			continue
		}
		own := a.rule.status(part, a.key)
		violated = append(violated, a.rule.name)
		t = max(t, until(part, a.rule.describe(part.Limit)))
		if own == http.StatusServiceUnavailable && d.Reason != algo.Never {
			status = own
		}
	}
	f := refusal{status: status, retry: retrySeconds(d, t), problem: problemBody(status, violated...)}
	if len(violated) > 0 {
		f.policy = violated[0]
	}
	if g.observe != nil {
		g.tellSeveral(all, parts, &f)
	}
	g.refuse(w, r, f, d)
}

// advertiseSeveral sets the fields with an item for each policy.
func (g *guard) advertiseSeveral(h http.Header, all []asking, parts []algo.Decision) {
	if g.headers != IETF {
		for i := range all {
			g.advertise(h, all[i].rule, &parts[i])
		}
		return
	}
	var buf [512]byte
	b := buf[:0]
	for i := range all {
		if all[i].rule.inForce(&parts[i]) {
			b = separate(b, 0)
			b = append(b, all[i].rule.describe(parts[i].Limit).text...)
		}
	}
	split := len(b)
	for i := range all {
		if rule := all[i].rule; rule.inForce(&parts[i]) && !unknown(&parts[i]) {
			b = separate(b, split)
			b = rule.appendLimit(b, &parts[i], rule.describe(parts[i].Limit))
		}
	}
	if split > 0 {
		text := string(b)
		setFields(h, &[2]string{text[:split], text[split:]})
	}
}

// separate appends what stands between two items of the list that begins at
// from.
func separate(b []byte, from int) []byte {
	if len(b) > from {
		b = append(b, ", "...)
	}
	return b
}

package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/keyfunc"
)

// answerState is the answer that a request of a key would get now, and its reason.
type answerState struct {
	Policy     string  `json:"policy"`
	Text       string  `json:"text"` // the answer in words
	Hash       string  `json:"hash"`
	Allowed    bool    `json:"allowed"`
	Reason     string  `json:"reason"`
	Cause      string  `json:"cause"`
	Limit      int64   `json:"limit"`
	Remaining  int64   `json:"remaining"`
	Source     string  `json:"source"`
	RetryAfter seconds `json:"retry_after"`
	NextAfter  seconds `json:"next_after"`
	ResetAfter seconds `json:"reset_after"`
	Seen       bool    `json:"seen"`          // false: no request with this key has been seen
	Blocked    int64   `json:"blocked_until"` // Unix time in ms; 0: not blocked
	Adjusted   string  `json:"adjusted"`      // the limit that an operator gave the key; empty: its own
}

// why answers what a request of one unit would get, and why. It charges nothing.
func why(ctx context.Context, p *policy, o *order) (any, error) {
	now, err := p.peek(ctx, o.Key)
	if err != nil {
		return nil, err
	}
	d, err := algo.Peek(ctx, p.of(o.Key), o.Key, 1)
	if err != nil {
		return nil, err
	}
	st := answerState{
		Policy: p.name, Hash: hashText(keyfunc.Hash(o.Key)), Allowed: d.Allowed, Reason: d.Reason.String(), Cause: d.Cause.String(),
		Limit: now.Limit, Remaining: now.Remaining, Source: now.Source.String(),
		RetryAfter: seconds(d.RetryAfter), NextAfter: seconds(now.NextAfter), ResetAfter: seconds(now.ResetAfter), Seen: p.seen(ctx, o.Key),
	}
	st.Text = p.words(&st, &d, o.Key)
	if b := p.blocks.find(o.Key); b != nil {
		st.Blocked = b.until.UnixMilli()
	}
	return st, nil
}

// words says why.
func (p *policy) words(st *answerState, d *algo.Decision, key string) string {
	text := fmt.Sprintf("admitted: %d of %d left", st.Remaining, st.Limit)
	if !d.Allowed {
		text = fmt.Sprintf("denied (%s): %d of %d left, again in %v", d.Reason, st.Remaining, st.Limit, d.RetryAfter.Round(time.Millisecond))
	}
	if algo.About(p.limiter).Off {
		text = "admitted, the limit is on trial or off; it would be " + text
	}
	if b := p.blocks.find(key); b != nil {
		text = fmt.Sprintf("denied: blocked until %s by %s: %s", b.until.UTC().Format(time.DateTime), b.by, b.note)
	}
	if known := learned(p.of(key), key); known != "" {
		text += "; learned: " + known
	}
	if p.can.adjust != nil {
		if t, ok := p.can.adjust.Adjusted()[key]; ok {
			st.Adjusted = t.Limit.String()
			text += fmt.Sprintf("; limit %s until %s: %s", t.Limit, t.Until.UTC().Format(time.DateTime), t.Reason)
		}
	}
	return text
}

// learned is what the limits in l have learned about a key, or without one about all keys.
func learned(l algo.Limiter, key ...string) string {
	var all []string
	for _, one := range learn.In(l) {
		all = append(all, one.Stats(key...).String())
	}
	return strings.Join(all, "; ")
}

// whyAll answers why for each policy in which the order names a key.
func (c *config) whyAll(ctx context.Context, o *order) map[string][]any {
	all := []any{}
	for i := range c.policies {
		p, one := &c.policies[i], *o
		key, err := p.find(&one)
		if err != nil {
			continue
		}
		one.Key = key
		if answer, err := why(ctx, p, &one); err == nil {
			all = append(all, answer)
		}
	}
	return map[string][]any{"policies": all}
}

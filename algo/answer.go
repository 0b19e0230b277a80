package algo

import (
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// noRoom answers a new key that found the table full.
func (k *keyed[S, V]) noRoom(key string, now int64) Decision {
	limit := k.limit.Load().Limit()
	after := keystore.ToDuration(k.store.RoomAfter(key, now))
	return Decision{Reason: Overload, Cause: cause.Keys, Limit: limit, RetryAfter: after, NextAfter: after, ResetAfter: after}
}

// setAnswer converts whether units were charged, and when they fit.
func (d *Decision) setAnswer(a decide.Answer) {
	d.Allowed, d.Reason = a.Allowed, Admitted
	d.Delay, d.RetryAfter = keystore.ToDuration(a.Delay), keystore.ToDuration(a.RetryAfter)
	if a.Never {
		d.Reason, d.RetryAfter = Never, Forever
	} else if !a.Allowed {
		d.Reason = Quota
	}
}

// setQuota converts the remaining units and the times of their return.
func (d *Decision) setQuota(q decide.Quota) {
	d.Limit, d.Remaining = q.Limit, q.Remaining
	d.NextAfter, d.ResetAfter = keystore.ToDuration(q.NextAfter), keystore.ToDuration(q.ResetAfter)
}

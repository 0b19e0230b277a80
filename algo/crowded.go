package algo

// crowded answers a new key that found no room in the table and must not
// share: limit is what it may hold, soonest the ticks until there may be room.
func crowded(p FullPolicy, limit, soonest int64) Decision {
	if p == AllowNew {
		return Decision{Allowed: true, Source: SourceOff, Limit: limit, Remaining: limit}
	}
	after := toDuration(soonest)
	return Decision{
		Reason: Quota, Limit: limit,
		RetryAfter: after, NextAfter: after, ResetAfter: after,
	}
}

package decide

// slidingWindow is a quota over the recent past: units weigh until they have passed. The state must
// be of these parameters.
type slidingWindow[S any] interface {
	// adopt converts s to these parameters, if necessary.
	adopt(s *S, now int64)
	// latest returns the newest instant in s. A decision at an earlier one would give back units whose
	// window has not passed by then.
	latest(s *S) int64
	// used returns how many units weigh at now.
	used(s *S, now int64) int64
	// add charges n units at now, whether they fit or not.
	add(s *S, now, n int64)
	// remove gives back up to n units charged at at.
	remove(s *S, at, n int64) int64
	// together reports whether charges at a and b are refunded as one.
	together(a, b int64) bool
	// after returns the span from now until at most most units weigh.
	after(s *S, now, most int64) int64
	// Limit returns the quota.
	Limit() int64
}

// answerSliding implements Answer of every sliding window. If s has a later instant than reading, it
// decides at that one.
func answerSliding[S any](p slidingWindow[S], s *S, reading, n int64) (a Answer, q Quota) {
	p.adopt(s, reading)
	now := max(reading, p.latest(s))
	quota, used := p.Limit(), p.used(s, now)
	a.Allowed = n <= quota-used || n == 0
	if a.Allowed && n > 0 {
		p.add(s, now, n)
		used += n
	}
	late := now - reading
	q.Limit, q.Remaining = quota, max(quota-used, 0)
	if used > 0 {
		q.ResetAfter = late + p.after(s, now, 0)
		q.NextAfter = late + p.after(s, now, quota-q.Remaining-1)
	}
	switch {
	case a.Allowed:
	case n > quota:
		a.Never = true
	default:
		a.RetryAfter = late + p.after(s, now, quota-n)
	}
	return a, q
}

// peekSliding implements Peek of every sliding window.
func peekSliding[S any](p slidingWindow[S], s *S, now, n int64) (Answer, Quota) {
	p.adopt(s, now)
	if n <= p.Limit()-p.used(s, max(now, p.latest(s))) {
		n = 0 // it fits, so the remaining units are the same
	}
	return answerSliding(p, s, now, n)
}

// admitSliding implements Admit of every sliding window.
func admitSliding[S any](p slidingWindow[S], s *S, now, n int64) bool {
	if n == 0 {
		return true
	}
	p.adopt(s, now)
	now = max(now, p.latest(s))
	if n > p.Limit()-p.used(s, now) {
		return false
	}
	p.add(s, now, n)
	return true
}

// refundSliding implements Refund of every sliding window. It takes units from the instant of c first, and
// from later charges only in the same cell: anything else, or units that have passed, belongs to
// other charges.
func refundSliding[S any](p slidingWindow[S], s *S, c Charge, now, n int64) int64 {
	now = max(now, p.latest(s))
	total, keep, first := c.N, c.N-n, c.A
	if !p.together(c.At, now) {
		total, keep = min(total, first), min(keep, first)
	}
	if total <= keep {
		return 0
	}
	return p.remove(s, c.At, total-keep)
}

// expirySliding returns the instant at which nothing weighs any more.
func expirySliding[S any](p slidingWindow[S], s *S, now int64) int64 {
	now = max(now, p.latest(s))
	return now + p.after(s, now, 0)
}

package decide

// slidingWindow is a quota over the recent past, in which units weigh until
// they have passed. The state is of these parameters.
type slidingWindow[S any] interface {
	// adopt makes s a state under these parameters, if it is not.
	adopt(s *S, now int64)
	// latest is the newest instant in s. A decision at an earlier one would
	// give back units whose window has not passed at that instant.
	latest(s *S) int64
	// used is how many units weigh at now.
	used(s *S, now int64) int64
	// add charges n units at now, whether they fit or not.
	add(s *S, now, n int64)
	// remove gives back up to n units charged at at.
	remove(s *S, at, n int64) int64
	// together reports whether charges at a and b are given back as one.
	together(a, b int64) bool
	// after is the span from now until no more than most units weigh.
	after(s *S, now, most int64) int64
	// Limit is the quota.
	Limit() int64
}

// answerSliding is Answer of every sliding window. Where s knows a later instant
// than the caller's reading, it decides at that one.
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

// peekSliding is Peek of every sliding window.
func peekSliding[S any](p slidingWindow[S], s *S, now, n int64) (Answer, Quota) {
	p.adopt(s, now)
	if n <= p.Limit()-p.used(s, max(now, p.latest(s))) {
		n = 0 // it fits: the remaining units are the same
	}
	return answerSliding(p, s, now, n)
}

// admitSliding is Admit of every sliding window.
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

// refundSliding is Refund of every sliding window. first is the charge at the
// instant of c. Later charges are given back only in the same cell. Taking
// units from anywhere else, or after they have passed, would refund the units
// of other charges.
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

// expirySliding is the instant at which nothing weighs.
func expirySliding[S any](p slidingWindow[S], s *S, now int64) int64 {
	now = max(now, p.latest(s))
	return now + p.after(s, now, 0)
}

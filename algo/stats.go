package algo

// StatsOf returns the sum of the [Stats] of all limiters in l that keep keys in this process; see
// [Walk]. A wrapper's own Stats do not count in addition to those of the limiters beneath it.
func StatsOf(l Limiter) (sum Stats) {
	for one := range Walk(l) {
		_, wraps := one.(Wrapper)
		table, ok := one.(interface{ Stats() Stats })
		if wraps || !ok {
			continue
		}
		s := table.Stats()
		sum.Live += s.Live
		sum.Room += s.Room
		sum.Overflowed += s.Overflowed
	}
	return sum
}

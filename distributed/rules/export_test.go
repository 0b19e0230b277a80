package rules

// VersionOf is the version of a rule that was read last.
func VersionOf(r *Rules, rule string) int64 {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	return r.entry(rule).version
}

// LimitersOf is how many limiters the rules hold.
func LimitersOf(r *Rules) (n int) {
	r.known.Range(func(_, v any) bool {
		e := v.(*entry)
		e.mu.Lock()
		defer e.mu.Unlock()
		n += len(e.made)
		return true
	})
	return n
}

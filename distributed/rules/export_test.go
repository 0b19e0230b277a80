package rules

// VersionOf is the version of a rule that is in force here.
func VersionOf(r *Rules, rule string) int64 {
	e := r.entry(rule)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rule.Version
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

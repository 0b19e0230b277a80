package rules

// VersionOf is the version of a rule that is in force here.
func VersionOf(r *Rules, rule string) int64 {
	if a := (*r.current.Load())[rule]; a != nil {
		return a.rule.Version
	}
	return 0
}

// LimitersOf is how many limiters the rules hold.
func LimitersOf(r *Rules) int {
	r.loading.Lock()
	defer r.loading.Unlock()
	return len(r.limiters)
}

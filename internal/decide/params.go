package decide

// Params are the parameters of a bucket in ticks, for a script that makes the
// same decisions.
type Params struct {
	Emission int64 // the time that one unit costs
	Depth    int64 // debt beyond which there is a delay
	MaxWait  int64 // longest delay that is admitted
	MaxCost  int64 // largest cost in units that can ever be admitted
	MaxDebt  int64 // largest plausible debt
}

// Params returns the parameters of g.
func (g *GCRA) Params() Params {
	return Params{g.emission, g.depth, g.maxWait, g.maxCost, g.maxDebt}
}

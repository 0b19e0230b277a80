package decide

// MaxBalance is the largest balance of prepaid credits, and the largest charge: the
// largest integer that a script on Redis counts exactly.
const MaxBalance = 1<<53 - 1

// FromCredits is how many of n units prepaid credits pay where a plan has remaining
// units left: the units that the plan lacks, at most the balance. The plan must admit
// the rest.
func FromCredits(n, remaining, balance int64) int64 {
	return min(max(n-max(remaining, 0), 0), max(balance, 0))
}

// SettledCredits is how many of actual units credits pay at the end, of a charge for
// which a plan paid planned units and credits paid paid: credits come back first, and
// the part beyond the charge is the plan's.
func SettledCredits(planned, paid, actual int64) int64 {
	return min(max(actual-planned, 0), paid)
}

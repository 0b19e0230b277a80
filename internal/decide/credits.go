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

// Split is a charge that a plan and prepaid credits share.
type Split struct {
	Planned, Paid int64 // by the plan and by credits, at the admission
	Balance, Owes int64 // then: what credits had left, and the most that the plan could be charged in addition
}

// NewSplit is a charge of planned and paid units, after which the credits had a balance, and the
// plan remaining units of its limit: it can owe as much as its limit.
func NewSplit(planned, paid, balance, remaining, limit int64) Split {
	return Split{planned, paid, max(balance, 0), max(remaining, 0) + max(limit, 0)}
}

// Credits is how many of actual units credits pay at the end. What comes back is theirs
// first. Units above the charge are theirs as far as the balance goes, then the plan's as far
// as it can owe, and the rest is theirs again: the balance falls below zero.
func (s Split) Credits(actual int64) int64 {
	more := actual - s.Planned - s.Paid
	if more <= 0 {
		return min(max(actual-s.Planned, 0), s.Paid)
	}
	return s.Paid + more - min(max(more-s.Balance, 0), s.Owes)
}

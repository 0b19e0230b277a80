// Package decide holds the rate limiting algorithms as pure functions: no clock, no lock, no key.
// They serve as the body of a store's compare-and-swap, as the model for linearizability checks and
// as the oracle for the scripts on Redis.
//
// An algorithm is a value with immutable parameters over a state S. S is an int64 where one word is
// enough ([GCRA], [FixedWindow]) and a pointer otherwise; the zero state is an unused key. Instants
// and spans are int64 in ticks of a [Resolution]. Every algorithm has
//
//	Answer(s S, now, n int64) (S, Answer, Quota)
//	Admit(s S, now, n int64) (S, bool)
//	Peek(s S, now, n int64) (Answer, Quota)
//	Charge(s S, now, n, delay int64) Charge
//	Refund(s S, c Charge, now, n, shift int64) (S, int64)
//	MaxRefund(c Charge, n int64) int64
//	ForceCharge(s S, c Charge, now, n int64) (S, bool)
//	Reset(s S, now int64) S
//	Plausible(s S, now int64) bool
//	Clamp(s S, now int64) (S, bool)
//	Expiry(s S, now int64) int64
//
// Answer charges n >= 0 units if they fit, and explains the result; s must be plausible. A denial,
// and a peek with n = 0, return s unchanged. Admit is Answer without the explanation; it denies a
// request that fits only after a delay. Peek is Answer without the charge: it explains s as it is.
//
// Charge describes the charge that Answer has just made at now, with delay; s is the state
// afterwards. Refund gives back n of the c.N units, as far as the charge still weighs, and returns
// the refunded ticks or units. ForceCharge adds n units to the charge, whether they fit or not, and
// reports whether a part was cut off: then no earlier charge may be refunded, because a refund
// could exceed its charge. MaxRefund bounds the ticks by which a refund moves other charges towards
// the present, 0 if it moves none. Reset returns the state of a key that has spent nothing.
//
// Plausible reports whether s stems from these parameters and a clock that read at most now. If
// not, the store reads the clock again, because now may be late. If the parameters are still
// current it stores the result of Clamp and decides again, once. Admit never admits on an
// implausible word, so words are checked after a denial or a peek, and pointers first. A store
// loads a word before it loads the parameters.
//
// Clamp reports whether anything was cut off, as ForceCharge does.
//
// Parameters that change in use have Succeed, which returns them as the successor of others.
// Afterwards no key waits longer than one that spends the whole new burst at that moment.
//
// From its Expiry on a state is equivalent to none. A word is its own expiry.
package decide

// Answer states whether units were charged, and when they fit. Spans are ticks and count from the
// instant of the decision; callers convert them with [Resolution.Duration].
type Answer struct {
	// Allowed reports whether the units were charged.
	Allowed bool
	// Never reports that the cost is larger than the limit can ever admit.
	Never bool
	// Delay above 0: admitted, but the work must wait that long.
	Delay int64
	// RetryAfter is the exact span after which a denied cost fits. It is 0 if Allowed or Never.
	RetryAfter int64
}

// Quota describes the remaining units after a decision. (As two types Answer and Quota fit
// registers, as one they would not: BenchmarkGCRA.)
type Quota struct {
	// Limit is the largest cost that fits at once.
	Limit int64
	// Remaining is how many units would now be admitted without delay.
	Remaining int64
	// NextAfter is the span until one unit more than Remaining fits; 0 when
	// nothing is spent.
	NextAfter int64
	// ResetAfter is the span until the whole limit is available again.
	ResetAfter int64
}

// Charge identifies an admission for refunds and settlements.
type Charge struct {
	// N is the cost in units, settlements included.
	N int64
	// At is when the units were charged, or when the admitted work starts.
	At int64
	// A and B belong to the algorithm.
	A, B int64
}

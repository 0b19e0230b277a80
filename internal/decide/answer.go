// Package decide holds the rate limiting algorithms as pure functions: no
// clock, no lock, no key. They are the body of a store's compare-and-swap, the
// model that linearizability is checked against and the oracle for the scripts
// on Redis.
//
// An algorithm is a value with immutable parameters over a state S. S is an
// int64 where one word is enough ([GCRA], [FixedWindow]) and a pointer
// otherwise; the zero state is a key that was never seen. Instants and spans
// are int64 in ticks of a [Resolution]. Every algorithm has
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
// Answer charges n >= 0 units if they fit and explains; s must be plausible. A denial, and a peek
// with n = 0, return s unchanged. Admit is Answer without the explanation; it denies a request that
// fits only after a delay. Peek is Answer without the charge: it explains s as it is.
//
// Charge describes the charge that Answer has just made at now, with that delay;
// s is the state afterwards. Refund gives n of the c.N units back, as far as the
// charge still weighs, and returns the number of refunded ticks or units.
// ForceCharge adds n units to the charge, whether they fit or not, and reports
// whether a part was cut off: then no earlier charge may be refunded, because a
// refund could exceed its charge. MaxRefund bounds the ticks by which a refund
// moves other charges towards the present; it is 0 where it moves none. Reset
// returns the state of a key that has spent nothing.
//
// Plausible reports whether s stems from these parameters and a clock that read
// at most now. When it is false the store reads the clock again, because now may
// be late. If the parameters are still the current ones it stores the result of
// Clamp, and decides again, once. Admit never admits on an implausible word, so
// words are checked after a denial or a peek, and pointers first. A store loads
// a word before it loads the parameters.
//
// Clamp reports whether anything was cut off, as ForceCharge does.
//
// Parameters that change in use have Succeed, which returns them as the ones
// that replace others. Afterwards no key waits longer than one that spends the
// whole new burst at that moment.
//
// From its Expiry on a state means the same as none. A word is its own expiry.
package decide

// Answer says whether units were charged, and when they fit. Spans are ticks and
// count from the instant of the decision; callers convert them with
// [Resolution.Duration].
type Answer struct {
	// Allowed reports whether the units were charged.
	Allowed bool
	// Never reports that the cost is larger than the limit can ever admit.
	Never bool
	// Delay above 0: admitted, but the work starts only then.
	Delay int64
	// RetryAfter is the exact span after which a denied cost fits. It is 0 if
	// allowed, and if Never.
	RetryAfter int64
}

// Quota describes the remaining units after a decision. (Answer and Quota
// are two types because they travel in registers, which one of both does not:
// BenchmarkGCRA.)
type Quota struct {
	// Limit is the largest cost that fits at once.
	Limit int64
	// Remaining is how many units would be admitted now, after this decision,
	// to start at once.
	Remaining int64
	// NextAfter is the span until one unit more than Remaining fits; 0 when
	// nothing is spent.
	NextAfter int64
	// ResetAfter is the span until the whole limit is available again.
	ResetAfter int64
}

// Charge describes an admission for refunds and settlements.
type Charge struct {
	// N is the cost in units, settlements included.
	N int64
	// At is when the units were charged, or when the admitted work starts.
	At int64
	// A and B belong to the algorithm.
	A, B int64
}

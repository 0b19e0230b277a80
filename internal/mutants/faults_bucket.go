package main

// bucketTests are the tests of what stands on that core.
const bucketTests = "TestTokenBucket|TestPacer|TestSmoothBursty|TestMark|UnderJumpingClocks|MintsNothing|TestDecideAgainst|" +
	"TestExactRetry|TestAccuracy|^TestLinearizable|Refund|TestLate|TestCancel|TestSettle|TestSetRate|TestSetBurst|TestReset|" +
	"Snapshot|Restore|TestWait|TestEviction|TestOverflowed|TestStale|EndOfTheClock|TestDenyNew|Allow|TestCells|TestFlood"

// bucketFaults are mistakes in the core: one word, the instant at which the
// bucket is full again.
var bucketFaults = []fault{
	{
		promise: "W1", name: "charge: no max(TAT, now)",
		file: "algo/gcra.go", tests: bucketTests,
		from: "next = max(tat, now) + n*g.emission; next < 0",
		to:   "next = tat + n*g.emission; next < 0",
	},
	{
		promise: "W1", name: "charge: one unit more than the burst",
		file: "algo/gcra.go", tests: bucketTests,
		from: "over = next - now - g.depth\n",
		to:   "over = next - now - g.depth - g.emission\n",
	},
	{
		promise: "W1", name: "charge: < for <=, what just fits is admitted and not charged",
		file: "algo/gcra.go", tests: bucketTests,
		from: "if over > g.wait || n == 0 {",
		to:   "if over >= g.wait || n == 0 {",
	},
	{
		promise: "U1", name: "admits: < for <=, what just fits is charged and denied",
		file: "algo/gcra.go", tests: bucketTests,
		from: "{ return over <= g.wait || n == 0 }",
		to:   "{ return over < g.wait || n == 0 }",
	},
	{
		promise: "W1", name: "charge: the TAT is a float",
		file: "algo/gcra.go", tests: bucketTests,
		from: "next = max(tat, now) + n*g.emission; next < 0",
		to:   "next = int64(float64(max(tat, now)) + float64(n*g.emission)); next < 0",
	},
	{
		promise: "W1", name: "charge: a cost near 2^63 overflows",
		file: "algo/gcra.go", tests: bucketTests,
		from: "	if n > g.most {\n		return tat, never\n	}\n",
		to:   "",
	},
	{
		promise: "W1", name: "Acquire: a negative cost is accepted",
		file: "algo/bucket.go", tests: bucketTests,
		from: "	if n < 0 {\n		return lease, costError(n)\n	}\n",
		to:   "",
	},
	{
		promise: "W1", name: "the emission is rounded down: faster than asked",
		file: "algo/rate.go", tests: bucketTests,
		from: "	if period%r.Count != 0 {\n		t++\n	}\n",
		to:   "",
	},
	{
		promise: "U2", name: "RetryAfter is truncated to nanoseconds",
		file: "algo/clock.go", tests: bucketTests,
		from: "(ticks + ticksPerNano - 1) >> tickShift",
		to:   "ticks >> tickShift",
	},
	{
		promise: "L1", name: "swap: a store in place of the compare-and-swap",
		file: "algo/words.go", tests: bucketTests,
		from: "	if !c.at.word.CompareAndSwap(old, next) {\n		return lost\n	}\n",
		to:   "	c.at.word.Store(next)\n",
	},
	{
		promise: "W1", name: "refund: the whole cost, however late",
		file: "algo/refunds.go", tests: bucketTests,
		from: "	left := max(c.tat-shift-now, cost-max(now-c.start, 0))\n	return min(max(left, 0), cost)\n",
		to:   "	return cost\n",
	},
	{
		promise: "W1", name: "refund: other refunds since are not counted",
		file: "algo/refunds.go", tests: bucketTests,
		from: "max(c.tat-shift-now, cost-max(now-c.start, 0))",
		to:   "max(c.tat-now, cost-max(now-c.start, 0))",
	},
	{
		promise: "W1", name: "refund: what a Reset forgave is given back again",
		file: "algo/refunds.go", tests: bucketTests,
		from: "{ return mark-r.forgiven.Load() < 0 }",
		to:   "{ return false }",
	},
	{
		promise: "W1", name: "Release: a second one gives back again",
		file: "algo/lease.go", tests: bucketTests,
		from: "		l.releaser = nil\n		r.Release",
		to:   "		r.Release",
	},
	{
		promise: "W1", name: "Settle: more than was charged is ignored",
		file: "algo/bucket.go", tests: bucketTests,
		from: "	b.owe(b.words.cell(h.Key), actual-h.N, h.State[2])\n",
		to:   "",
	},
	{
		promise: "W1", name: "Allow: what would be delayed is denied and charged",
		file: "algo/bucket.go", tests: bucketTests,
		from: "b.spend(key, now, n, 0)",
		to:   "b.spend(key, now, n, 1<<62)",
	},
	{
		promise: "U1", name: "a lowered limit does not heal old debt",
		file: "algo/gcra.go", tests: bucketTests,
		from: "{ return tat-now <= g.ceiling }",
		to:   "{ return true }",
	},
	{
		promise: "W1", name: "Snapshot: debt beyond the limit is not healed",
		file: "algo/snapshot.go", tests: bucketTests,
		from: "debt(b.limit.Load().heal(tat, now), now)",
		to:   "debt(tat, now)",
	},
	{
		promise: "W1", name: "Restore: the time since the snapshot is owed again",
		file: "algo/snapshot.go", tests: bucketTests,
		from: "			s.debt -= elapsed\n",
		to:   "",
	},
	{
		promise: "W1", name: "Wait: what was admitted with a delay and canceled stays charged",
		file: "algo/wait.go", tests: bucketTests,
		from: "		lease.Release(Canceled)\n",
		to:   "",
	},
	{
		promise: "W2", name: "Guava: a caller waits for its own debt",
		file: "algo/gcra.go", tests: bucketTests,
		from: "	if g.forward {\n		over -= n * g.emission\n	}\n",
		to:   "",
	},
	{
		promise: "W2", name: "marker: a clock that goes back fills the buckets",
		file: "algo/marking.go", tests: bucketTests,
		from: "	if now <= s.last {",
		to:   "	if now == s.last {",
	},
	{
		promise: "W2", name: "trTCM: green does not take from the peak bucket",
		file: "algo/marking.go", tests: bucketTests,
		from: "	if out == Yellow || m.plan == peaking {",
		to:   "	if out == Yellow {",
	},
}

// keyTests are the tests of the table of keys.
const keyTests = "Eviction|Newcomer|ChangedHands|Overflowed|Flood|Cells|FullPolic|Churn|Keys"

// keyFaults are mistakes in the table of keys.
var keyFaults = []fault{
	{
		promise: "M2", name: "a live bucket is evicted when the table is full",
		file: "algo/table.go", tests: keyTests,
		from: "oldest, at := horizon, -1",
		to:   "oldest, at := int64(math.MaxInt64), -1",
	},
	{
		promise: "M2", name: "a key without a slot is decided on an old reading of the clock",
		file: "algo/bucket.go", tests: keyTests,
		from: "c, tat = c.reload(); c.absent() {\n				now = b.words.clock.now()",
		to:   "c, tat = c.reload(); c.absent() {\n				_ = now",
	},
	{
		promise: "M2", name: "a charge to a slot that changed hands counts as done",
		file: "algo/words.go", tests: keyTests,
		from: "	if c.at.id.Load() == c.id {\n		return done\n	}\n",
		to:   "	if c.id >= 0 {\n		return done\n	}\n",
	},
	{
		promise: "M2", name: "a window's newcomer leaves the debt of its shared state behind",
		file: "algo/cells.go", tests: keyTests,
		from: "		t.cells.bequeath(h.value, shared)\n",
		to:   "		t.cells.bequeath(h.value, new(S))\n",
	},
	{
		promise: "M1", name: "rings of evicted keys are made anew",
		file: "algo/stamps.go", tests: keyTests,
		from: "	if len(ring) < len(from.ring) {",
		to:   "	if len(ring) >= 0 {",
	},
	{
		promise: "S1", name: "two keys share a word: the fingerprint has 16 bits",
		file: "algo/table.go", tests: keyTests,
		from: "if id := maphash.String(t.seed, key); id != 0 {",
		to:   "if id := maphash.String(t.seed, key) & 0xffff; id != 0 {",
	},
}

package main

const windowTests = "Window|Refund|Sliding|Strict|Spread|Cells|EndOfTheClock|Reset|Settle"

// windowFaults are mistakes in limits over aligned and moving windows.
var windowFaults = []fault{
	{
		promise: "W2", name: "fixed window: one unit more than the quota",
		file: "algo/fixed.go", tests: windowTests,
		from: "	over = spent - f.depth\n",
		to:   "	over = spent - f.depth - f.share.by\n",
	},
	{
		promise: "W2", name: "fixed window: the edge is off by one",
		file: "algo/fixed.go", tests: windowTests,
		from: "	f.phase = (window - (reference%window+window)%window) % window\n",
		to:   "	f.phase = (window - (reference%window+window)%window + ticksPerNano) % window\n",
	},
	{
		promise: "U2", name: "fixed window: RetryAfter ends before the edge",
		file: "algo/fixed.go", tests: windowTests,
		from: "	edge := begin + f.window.by\n",
		to:   "	edge := begin + f.window.by - ticksPerNano\n",
	},
	{
		promise: "W2", name: "fixed window: a charge of the last window is given back in this one",
		file: "algo/fixedrefund.go", tests: windowTests,
		from: "if begin != began || word <= begin",
		to:   "if began == -1 || word <= begin",
	},
	{
		promise: "W2", name: "sliding window: the older counter is rounded down",
		file: "algo/tally.go", tests: windowTests,
		from: "bits.Add64(lo, uint64(width-1), 0)",
		to:   "bits.Add64(lo, 0, 0)",
	},
	{
		promise: "W2", name: "sliding window: the older counter is forgotten at the edge",
		file: "algo/tally.go", tests: windowTests,
		from: "		return s.two[s.newest&1], 0\n",
		to:   "		return 0, 0\n",
	},
	{
		promise: "W2", name: "cells: the oldest cell is forgotten too early",
		file: "algo/tally.go", tests: windowTests,
		from: "k < i-p.cells && k <= s.newest; k++",
		to:   "k <= i-p.cells && k <= s.newest; k++",
	},
	{
		promise: "W2", name: "sliding window: it forgets the time when all is given back",
		file: "algo/tally.go", tests: windowTests,
		from: "return p.begin(s.newest) }\n",
		to:   "if s.sum == 0 { return 0 }; return p.begin(s.newest) }\n",
	},
	{
		promise: "W2", name: "windows: what was charged under another period is given back",
		file: "algo/windowed.go", tests: windowTests,
		from: "void := lease.At <= w.since.Load() || w.cells",
		to:   "void := w.cells",
	},
	{
		promise: "W2", name: "sliding log: a stamp passes a nanosecond early",
		file: "algo/stamps.go", tests: windowTests,
		from: "s.passed(now>>tickShift-p.period)",
		to:   "s.passed(now>>tickShift-p.period+1)",
	},
	{
		promise: "W2", name: "strict: burst and refill together exceed the quota",
		file: "algo/strict.go", tests: windowTests,
		from: "Rate{n - burst + 1, a.rate.Period + 1}",
		to:   "Rate{n - burst + 1, a.rate.Period}",
	},
	{
		promise: "W2", name: "windows: what was charged before a Reset is given back",
		file: "algo/windowed.go", tests: windowTests,
		from: "void := lease.At <= w.since.Load() || w.cells.stripe(lease.Key).voided(lease.At)",
		to:   "void := lease.At <= w.since.Load()",
	},
	{
		promise: "L1", name: "windows: the clock is not moved up to what the state knows",
		file: "algo/windowed.go", tests: windowTests,
		from: "	now := max(asked, p.latest(h.value))\n",
		to:   "	now := asked\n",
	},
}

// composedFaults are mistakes in deciding about several limits at once.
var composedFaults = []fault{
	{
		promise: "W4", name: "AcquireAll: earlier charges stay after a denial",
		file: "algo/acquireall.go", tests: "AcquireAll|TestAll|Combine|Ban",
		from: "			releaseAll(g.leases[:held], Canceled)\n			held = 0\n",
		to:   "			held = 0\n",
	},
	{
		promise: "W4", name: "AcquireAll: repetitions behind a peek count twice in RetryAfter",
		file: "algo/ask.go", tests: "AcquireAll|TestBatch",
		from: "		if first == i+k { ",
		to:   "		if first == i+k || leaves[first].N == 0 { ",
	},
	{
		promise: "W4", name: "AcquireAll: a panic keeps the earlier charges",
		file: "algo/acquireall.go", tests: "AcquireAll|TestAll|Combine|Ban",
		from: "	defer func() { releaseAll(g.leases[:held], Canceled) }()\n",
		to:   "",
	},
	{
		promise: "W4", name: "AcquireAll: RetryAfter is the first denial's, not the longest",
		file: "algo/combine.go", tests: "AcquireAll|TestAll|Combine|Ban",
		from: "			d.RetryAfter = max(d.RetryAfter, p.RetryAfter)\n",
		to:   "			if d.RetryAfter == 0 {\n				d.RetryAfter = p.RetryAfter\n			}\n",
	},
	{
		promise: "W4", name: "Ban: a ban is not kept",
		file: "algo/escalate.go", tests: "AcquireAll|TestAll|Combine|Ban",
		from: "	if _, until := e.penalty.read(word, now); until > now {\n		return toDuration(until - now)\n	}\n	return 0\n",
		to:   "	_ = now\n	return 0\n",
	},
}

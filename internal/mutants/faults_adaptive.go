package main

// adaptiveFaults are mistakes in limits on what is in flight.
var adaptiveFaults = []fault{
	{
		promise: "C2", name: "run queue: the quota of a container is not seen",
		file: "adaptive/runqueue.go", tests: "RunQueue",
		from: "q.procs, q.looked = machine.Capacity(), at",
		to:   "q.procs, q.looked = float64(machine.Procs()), at",
	},
	{
		promise: "C1", name: "in flight is checked and then added to",
		file: "adaptive/limiter.go", tests: "AboveTheLimit|Leaks",
		from: "		interleave.Point()\n		if l.inFlight.CompareAndSwap(was, was+n) {\n			return was + n, limit, true\n		}\n",
		to:   "		interleave.Point()\n		l.inFlight.Add(n)\n		return was + n, limit, true\n",
	},
	{
		promise: "C1", name: "a Release with an outcome that teaches nothing frees no place",
		file: "adaptive/limiter.go",
		from: "	left := l.inFlight.Add(-weight(h.N))\n",
		to:   "	left := l.inFlight.Load()\n	if o <= algo.Failed {\n		left = l.inFlight.Add(-weight(h.N))\n	}\n",
	},
	{
		promise: "C1", name: "the strategy is taught before the place is freed",
		file: "adaptive/limiter.go", tests: "Panicking",
		from: "	left := l.inFlight.Add(-weight(h.N))\n",
		to:   "	l.strategy.Observe(Sample{RTT: 1, InFlight: 1, Outcome: o})\n	left := l.inFlight.Add(-weight(h.N))\n",
	},
	{
		promise: "C1", name: "Settle does not change what is in flight",
		file: "adaptive/limiter.go",
		from: "	l.inFlight.Add(weight(actual) - weight(h.N))\n",
		to:   "",
	},
	{
		promise: "C1", name: "queue: a request that gives up stays in the line",
		file: "adaptive/line.go",
		from: "	case w.verdict == waiting:\n		q.remove(w)\n",
		to:   "	case w.verdict == waiting:\n",
	},
	{
		promise: "C1", name: "queue: who was admitted and is gone keeps the place",
		file: "adaptive/line.go",
		from: "		q.limiter.inFlight.Add(-w.n) // nobody is there to use the place\n",
		to:   "",
	},
	{
		promise: "C1", name: "queue: a release wakes nobody",
		file: "adaptive/limiter.go",
		from: "		defer l.line.admit()\n",
		to:   "		_ = l.line\n",
	},
	{
		promise: "C1", name: "per key: a key is forgotten with one still in flight",
		file: "adaptive/keyed.go", tests: "PerKey",
		from: "	case is > 0:\n		s.counts[key] = is\n",
		to:   "	case is > 1:\n		s.counts[key] = is\n",
	},
	{
		promise: "M1", name: "per key: keys are never forgotten",
		file: "adaptive/keyed.go", tests: "PerKey",
		from: "		delete(s.counts, key)\n",
		to:   "		s.counts[key] = 0\n",
	},
	{
		promise: "S3", name: "a class from the request indexes out of range",
		file: "adaptive/class.go", tests: "Class|Priorit",
		from: "func (c Class) clamp() Class { return min(c, Sheddable) }",
		to:   "func (c Class) clamp() Class { return c }",
	},
	{
		promise: "C2", name: "fast failures teach",
		file: "adaptive/limiter.go",
		from: "		return mean > 0 && rtt >= mean\n",
		to:   "		return true\n",
	},
	{
		promise: "C2", name: "cancellations and streams teach",
		file: "adaptive/limiter.go",
		from: "	if o > algo.Failed {\n		return\n	}\n",
		to:   "",
	},
	{
		promise: "C2", name: "the strategy's limit is not bounded from below",
		file: "adaptive/limiter.go",
		from: "min(max(int64(l.strategy.Limit()), l.min), l.max)",
		to:   "min(int64(l.strategy.Limit()), l.max)",
	},
	{
		promise: "C2", name: "the strategy's limit is not bounded from above",
		file: "adaptive/limiter.go",
		from: "min(max(int64(l.strategy.Limit()), l.min), l.max)",
		to:   "max(int64(l.strategy.Limit()), l.min)",
	},
	{
		promise: "C2", name: "a learner leaves its bounds",
		file: "adaptive/estimate.go", tests: "Learner|Gradient2|Vegas|AIMD",
		from: "	e.value = min(max(v, e.min), e.max)\n",
		to:   "	e.value = v\n",
	},
	{
		promise: "C2", name: "a learner raises a limit that nobody uses",
		file: "adaptive/estimate.go", tests: "Learner|Gradient2|Vegas|AIMD",
		from: "{ return float64(s.InFlight)*2 < e.value }",
		to:   "{ return false }",
	},
	{
		promise: "C2", name: "BBR: overload ends a second after its first sample",
		file: "adaptive/bbr.go", tests: "BBR",
		from: "		b.cause, b.until = cause, at+coolDown\n",
		to:   "		b.cause = cause\n		if !b.over {\n			b.until = at + coolDown\n		}\n",
	},
	{
		promise: "C2", name: "BBR: what ran under overload is taken for the normal state",
		file: "adaptive/bbr.go", tests: "BBR|Overload",
		from: "		if at-int64(s.RTT) >= b.calmSince.Load() {\n",
		to:   "		if at > 0 {\n",
	},
	{
		promise: "C2", name: "BBR: the limit is lowered while more is in flight than it allows",
		file: "adaptive/bbr.go", tests: "BBR",
		from: "was && inFlight > before {",
		to:   "was && inFlight > before && false {",
	},
	{
		promise: "C2", name: "a failed signal counts as overload",
		file: "adaptive/signal.go", tests: "Signal|Sample|MaxOf",
		from: "	return level, ok && !math.IsNaN(level) && !math.IsInf(level, 0)\n",
		to:   "	return level, true\n",
	},
	{
		promise: "C2", name: "Min is the highest limit of its strategies",
		file: "adaptive/strategy.go", tests: "Min|FailedSignal",
		from: "		least = min(least, s.Limit())\n",
		to:   "		least = max(least, s.Limit())\n",
	},
	{
		promise: "C2", name: "throttle: what it denied itself is not a request",
		file: "adaptive/throttle.go", tests: "Throttle",
		from: "	t.count(weight(n), 0)\n",
		to:   "	if p == 0 {\n		t.count(weight(n), 0)\n	}\n",
	},
	{
		promise: "C2", name: "throttle: a refusal counts as accepted",
		file: "adaptive/throttle.go", tests: "Throttle",
		from: "	case algo.Succeeded:\n		t.count(0, weight(h.N))\n",
		to:   "	case algo.Succeeded, algo.Failed:\n		t.count(0, weight(h.N))\n",
	},
}

package main

const scriptTests = "Parity|Outlives|ClockThatSteppedBack|Expire|DenialWrites|SeveralLevels|SameBucketTwice|InFlight|SlidingLogBound|WindowsGiveBack"

// scriptFaults are mistakes in the Lua scripts.
var scriptFaults = []fault{
	{
		promise: "W3", name: "bucket.lua: no max(TAT, now)",
		file: "distributed/bucket.lua", tests: scriptTests,
		from: "math.min(math.max(tat, now), now + a + b)\n    over",
		to:   "math.min(tat, now + a + b)\n    over",
	},
	{
		promise: "W3", name: "bucket.lua: a TAT from a clock that stepped back is not cut",
		file: "distributed/bucket.lua", tests: scriptTests,
		from: "math.min(math.max(tat, now), now + a + b)\n    over",
		to:   "math.max(tat, now)\n    over",
	},
	{
		promise: "W3", name: "bucket.lua: a cut TAT is not written on a denial",
		file: "distributed/bucket.lua", tests: scriptTests,
		from: "      tat = base\n      write(key, tat)\n",
		to:   "      tat = base\n",
	},
	{
		promise: "L2", name: "bucket.lua: < for <=",
		file: "distributed/bucket.lua", tests: scriptTests,
		from: "if c > 0 and over <= b then",
		to:   "if c > 0 and over < b then",
	},
	{
		promise: "W3", name: "bucket.lua: a late refund gives back the whole cost",
		file: "distributed/bucket.lua", tests: scriptTests,
		from: "math.min(a, b - math.max(now - c, 0), tat - now)",
		to:   "math.min(a, tat - now)",
	},
	{
		promise: "M3", name: "scripts: a key has no TTL",
		file: "distributed/prelude.lua", tests: scriptTests,
		from: "redis.call('SET', key, text, 'PX', int(math.max(math.ceil(us / 1000), 1)))",
		to:   "redis.call('SET', key, text)",
	},
	{
		promise: "M3", name: "scripts: a key lives ten seconds longer than it means something",
		file: "distributed/prelude.lua", tests: scriptTests,
		from: "math.ceil(us / 1000)",
		to:   "math.ceil(us / 1000) + 10000",
	},
	{
		promise: "L2", name: "scripts: Lua writes the TAT as a float of 14 digits",
		file: "distributed/prelude.lua", tests: scriptTests,
		from: "string.format('%.0f', x)",
		to:   "tostring(x)",
	},
	{
		promise: "F4", name: "scripts: a key of another type fails the whole batch",
		file: "distributed/prelude.lua", tests: "AnotherType",
		from: "redis.pcall('GET', key)",
		to:   "redis.call('GET', key)",
	},
	{
		promise: "L2", name: "fixedwindow.lua: < for <=",
		file: "distributed/fixedwindow.lua", tests: scriptTests,
		from: "elseif count + c <= b then",
		to:   "elseif count + c < b then",
	},
	{
		promise: "W2", name: "fixedwindow.lua: a charge of an older window is given back",
		file: "distributed/fixedwindow.lua", tests: scriptTests,
		from: "if ends == b and count > 0 then",
		to:   "if count > 0 then",
	},
	{
		promise: "L2", name: "slidingwindow.lua: floor for ceil",
		file: "distributed/slidingwindow.lua", tests: scriptTests,
		from: "math.ceil(prev * (length - elapsed) / length)",
		to:   "math.floor(prev * (length - elapsed) / length)",
	},
	{
		promise: "M3", name: "held.lua: the set has no TTL",
		file: "distributed/held.lua", tests: scriptTests,
		from: "  redis.call('PEXPIRE', key, int(math.ceil((math.max(nth(key, -1), now) - now) / 1000) + slack))\n",
		to:   "",
	},
	{
		promise: "W2", name: "held.lua: one unit more than the limit",
		file: "distributed/held.lua", tests: scriptTests,
		from: "    if count + c <= b then",
		to:   "    if count + c <= b + 1 then",
	},
	{
		promise: "W4", name: "together.lua: a denial charges those that fit",
		file: "distributed/together.lua", tests: scriptTests,
		from: "if admitted and tonumber(ARGV[1]) == 0 then",
		to:   "if tonumber(ARGV[1]) == 0 then",
	},
}

// storeFaults are mistakes in talking to Redis, and in doing without it.
var storeFaults = []fault{
	{
		promise: "W3", name: "a reply that was lost: the command is sent again",
		file: "distributed/send.go", tests: "LostReply|LateReply",
		from: "func (*command) NoRetry() bool { return true }",
		to:   "func (*command) NoRetry() bool { return false }",
	},
	{
		promise: "W3", name: "a broken connection counts as certainly not executed",
		file: "distributed/failure.go", tests: "LostReply|LateReply",
		from: "		return unsent\n	}\n	return unknown\n",
		to:   "		return unsent\n	}\n	return unsent\n",
	},
	{
		promise: "W3", name: "a charge that came too late is not given back",
		file: "distributed/flight.go", tests: "Late",
		from: "		e.owner.takeBack(e)\n",
		to:   "",
	},
	{
		promise: "F1", name: "callers wait for Redis as long as it takes",
		file: "distributed/lane.go", tests: "KeepTheDeadline|BreakerOpens",
		from: "	case <-e.timer.C:\n",
		to:   "",
	},
	{
		promise: "F1", name: "the context's deadline is not heeded",
		file: "distributed/lane.go", tests: "DeadlineIsKept|ContextEnds",
		from: "	case <-ctx.Done():\n",
		to:   "",
	},
	{
		promise: "F2", name: "the breaker is not asked: every call goes out",
		file: "distributed/call.go", tests: "ProbesAreFew",
		from: "func (s *Store) call(ctx context.Context, e *entry) bool {\n	l := s.router.lane(e.keys[0])\n	if !l.breaker.allow() || !l.submit(e) {",
		to:   "func (s *Store) call(ctx context.Context, e *entry) bool {\n	l := s.router.lane(e.keys[0])\n	if !l.submit(e) {",
	},
	{
		promise: "F2", name: "the breaker never opens",
		file: "distributed/breaker.go", tests: "BreakerOpens|ProbesAreFew",
		from: "	b.level.Store(0)\n",
		to:   "",
	},
	{
		promise: "F2", name: "probes do not wait for their interval",
		file: "distributed/breaker.go", tests: "ProbesAreFew",
		from: "b.store.sleep(interval + rand.N(interval/2+1))",
		to:   "b.store.sleep(interval/20 + rand.N(interval/20+1))",
	},
	{
		promise: "F3", name: "probes back off to ten intervals",
		file: "distributed/breaker.go", tests: "Recovery|VirtualDays",
		from: "b.store.sleep(interval + rand.N(interval/2+1))",
		to:   "b.store.sleep(60*interval + rand.N(interval/2+1))",
	},
	{
		promise: "F3", name: "the breaker never closes",
		file: "distributed/breaker.go", tests: "BreakerOpens|Recovery",
		from: "	b.level.Store(level)\n	b.probing = level < whole",
		to:   "	b.level.Store(0)\n	b.probing = level < whole",
	},
	{
		promise: "F4", name: "one key's fault opens the breaker",
		file: "distributed/flight.go", tests: "AnotherType|WrongType",
		from: "case f == fine || f == fault:",
		to:   "case f == fine:",
	},
	{
		promise: "W3", name: "an error of Redis means allow",
		file: "distributed/fallback.go", tests: "Fallback|PartsOfTheFleet",
		from: "		f.spend(ctx, lease, key, n)\n",
		to:   "		lease.Decision = algo.Decision{Allowed: true, Limit: quota, Remaining: quota}\n",
	},
	{
		promise: "W3", name: "fallback: every instance has the whole limit",
		file: "distributed/share.go", tests: "Fallback|PartsOfTheFleet|Share",
		from: "	part := total / n\n",
		to:   "	part := total + 0*n\n",
	},
	{
		promise: "W3", name: "fallback: every instance has the whole rate",
		file: "distributed/share.go", tests: "Fallback|PartsOfTheFleet|Outages|Share",
		from: "		r.Period *= time.Duration(by)\n",
		to:   "",
	},
	{
		promise: "W3", name: "fallback: the local buckets are full when Redis goes away",
		file: "distributed/limiter.go", tests: "Fallback",
		from: "		l.fallback.warm(c.key, &d)\n",
		to:   "",
	},
	{
		promise: "W3", name: "the count of the instances falls as soon as one is late",
		file: "distributed/registry.go", tests: "Registry|CountThatFalls|InstancesThatLeave",
		from: "	case time.Since(r.lower) < lifetime:",
		to:   "	case time.Since(r.lower) < 0:",
	},
	{
		promise: "W3", name: "recovery: Settle forgets",
		file: "distributed/store.go", tests: "Recovery",
		from: "		if d := l.fallback.debts; d != nil {",
		to:   "		if d := l.fallback.debts; d != nil && s.recovery != Settle {",
	},
	{
		promise: "U2", name: "deny cache: a proof never ends",
		file: "distributed/denycache.go", tests: "DenyCache|ProofsLast",
		from: "time.Since(p.heard) >= proofLifetime",
		to:   "time.Since(p.heard) < 0",
	},
	{
		promise: "U1", name: "deny cache: time does not pass",
		file: "distributed/denycache.go", tests: "DenyCache",
		from: "p.now + most + most/1000 + 1, p.now",
		to:   "p.now + 0*most, p.now",
	},
	{
		promise: "U1", name: "deny cache: a refund leaves the proof standing",
		file: "distributed/giveback.go", tests: "DenyCache",
		from: "	l.store.denied.drop(redisKey)\n",
		to:   "",
	},
	{
		promise: "W3", name: "blocks: unspent units are not returned",
		file: "distributed/blocks.go", tests: "Blocks",
		from: "	l.credit(l.redisKey(k.key), bucketScript, args{opRefund, k.left * k.emission, k.granted * k.emission, k.start})\n",
		to:   "	_ = l\n",
	},
	{
		promise: "W3", name: "blocks: as large as the excess, for each instance",
		file: "distributed/blocks.go", tests: "Blocks",
		from: "		return b.limiter.store.blocks / int64(in.count)\n",
		to:   "		return b.limiter.store.blocks\n",
	},
	{
		promise: "S2", name: "a brace in a key picks the slot",
		file: "distributed/key.go", tests: "Hostile|Injective|FuzzKey|Slot",
		from: "range \"%{}:~\\x7f\"",
		to:   "range \"%:~\\x7f\"",
	},
	{
		promise: "S1", name: "a separator in a key is not escaped",
		file: "distributed/key.go", tests: "Hostile|Injective|FuzzKey|Slot",
		from: "range \"%{}:~\\x7f\"",
		to:   "range \"%{}~\\x7f\"",
	},
	{
		promise: "G1", name: "Close does not wait for its workers, nor wake them",
		file: "distributed/lane.go", tests: "OutlivesClose",
		from: "	l.work.Broadcast()\n	l.mu.Unlock()\n	for _, e := range drop {\n		e.err = ErrClosed\n		l.hand(e)\n	}\n	l.stopped.Wait()\n",
		to:   "	l.mu.Unlock()\n	for _, e := range drop {\n		e.err = ErrClosed\n		l.hand(e)\n	}\n",
	},
	{
		promise: "C1", name: "an in-flight limit on Redis is not renewed",
		file: "distributed/held.lua", tests: "InFlight",
		from: "      if ends > now then -- what",
		to:   "      if ends > now + 1e15 then -- what",
	},
}

package main

// grpcFaults are mistakes in the interceptors.
var grpcFaults = []fault{
	{
		promise: "C1", name: "grpc: the release of a unary call is not deferred",
		file: "grpcmw/unary.go",
		from: "	defer func() { lease.Release(outcome) }()\n",
		to:   "	defer func() {\n		if outcome != algo.Failed {\n			lease.Release(outcome)\n		}\n	}()\n",
	},
	{
		promise: "C1", name: "grpc: a stream is not released",
		file: "grpcmw/serverstream.go",
		from: "	defer func() { lease.Release(outcome) }()\n",
		to:   "	_ = outcome\n",
	},
	{
		promise: "C1", name: "grpc: the last message of a stream is not released",
		file: "grpcmw/messages.go",
		from: "	p.ended = true\n	p.inWork.Release(algo.Ignored)\n",
		to:   "	p.ended = true\n",
	},
	{
		promise: "C1", name: "grpc: a delay that was canceled stays charged",
		file: "grpcmw/admit.go",
		from: "		lease.Release(algo.Canceled)\n		return g.tooLate",
		to:   "		return g.tooLate",
	},
	{
		promise: "C2", name: "grpc: streams teach",
		file: "grpcmw/serverstream.go",
		from: "	outcome := algo.Ignored\n",
		to:   "	outcome := algo.Succeeded\n",
	},
	{
		promise: "C2", name: "grpc: calls whose client went away teach",
		file: "grpcmw/outcome.go",
		from: "	case errors.Is(ctx.Err(), context.Canceled):\n		return algo.Ignored\n	case troubled",
		to:   "	case troubled",
	},
	{
		promise: "-", name: "grpc: RESOURCE_EXHAUSTED for overload",
		file: "grpcmw/denial.go",
		from: "		r.code, r.text = codes.Unavailable, textOverload\n",
		to:   "		r.text = textOverload\n",
	},
	{
		promise: "-", name: "grpc: pushback twice",
		file: "grpcmw/pushback.go",
		from: "len(t.Trailer()[pushbackKey]) > 0 {\n		return\n	}\n",
		to:   "len(t.Trailer()[pushbackKey]) > 0 {\n		_ = t\n	}\n",
	},
	{
		promise: "U2", name: "grpc: pushback is rounded down",
		file: "grpcmw/pushback.go",
		from: "	if d%time.Millisecond > 0 {\n		ms++\n	}\n",
		to:   "",
	},
	{
		promise: "-", name: "grpc: SetHeader, which commits the client to the attempt",
		file: "grpcmw/rate.go",
		from: "grpc.SetTrailer(ctx, g.rateTrailer(d))",
		to:   "grpc.SetHeader(ctx, g.rateTrailer(d))",
	},
	{
		promise: "C1", name: "grpc: the tap charges",
		file: "grpcmw/tap.go",
		from: "	lease, err := g.limiter.Acquire(noTime{ctx}, key, 0)\n	lease.Release(algo.Canceled) // nothing",
		to:   "	lease, err := g.limiter.Acquire(noTime{ctx}, key, 1)\n	lease.Release(algo.Succeeded) // nothing",
	},
	{
		promise: "S2", name: "grpc: a limiter's error reaches the client",
		file: "grpcmw/admit.go",
		from: "	r := reply{code: codes.Unavailable, text: textOverload, wait: unstated}\n",
		to:   "	r := reply{code: codes.Unavailable, text: err.Error(), wait: unstated}\n",
	},
	{
		promise: "S2", name: "grpc: a denial names the key",
		file: "grpcmw/denial.go",
		from: "text: textQuota, class: classOf(key)",
		to:   "text: textQuota + key, class: classOf(key)",
	},
	{
		promise: "W1", name: "grpc: an error of the limiter means allow",
		file: "grpcmw/admit.go",
		from: "	if g.onError == FailOpen && !badCost",
		to:   "	if !badCost",
	},
}

// identityFaults are mistakes in who is who.
var identityFaults = []fault{
	{
		promise: "S1", name: "key parts are joined by a colon",
		file: "keyfunc/join.go",
		from: "		b.Write(strconv.AppendInt(digits[:0], int64(len(p)), 10))\n",
		to:   "		_ = strconv.AppendInt(digits[:0], int64(len(p)), 10)\n",
	},
	{
		promise: "S1", name: "the left-most address of X-Forwarded-For",
		file: "keyfunc/walk.go",
		from: "	if c.rules.believes(h) {\n		return onward\n	}\n	return found\n",
		to:   "	return onward\n",
	},
	{
		promise: "S1", name: "the header of an untrusted peer is believed",
		file: "keyfunc/ipconfig.go",
		from: "	if r.believes(peer) {\n		return r.client(peer, req.Header[r.header]), nil\n	}\n",
		to:   "	if len(req.Header[r.header]) > 0 {\n		return r.client(peer, req.Header[r.header]), nil\n	}\n",
	},
	{
		promise: "S1", name: "a hop that cannot be read is skipped",
		file: "keyfunc/walk.go",
		from: "	if c.hops++; !ok || c.hops > maxHops {\n		return malformed\n	}\n",
		to:   "	if c.hops++; !ok {\n		return onward\n	}\n	if c.hops > maxHops {\n		return malformed\n	}\n",
	},
	{
		promise: "S1", name: "IPv6 is not masked",
		file: "keyfunc/iprules.go",
		from: "		a = a.mask(r.bits)\n",
		to:   "",
	},
	{
		promise: "S1", name: "the neighbours of a proxy in its /64 are proxies",
		file: "keyfunc/iprules.go",
		from: "r.trustAll || r.trusted.contains(h.ip)",
		to:   "r.trustAll || r.trusted.contains(h.ip) || r.trusted.contains(h.ip.mask(64)) || r.trusted.contains(h.ip.last(64))",
	},
	{
		promise: "S2", name: "an API key reaches the store",
		file: "keyfunc/secret.go",
		from: "		return macs.key(v), nil\n",
		to:   "		_ = macs.key(v)\n		return \"~secret:\" + v, nil\n",
	},
	{
		promise: "M1", name: "unmatched requests are keyed by the pattern they made up",
		file: "keyfunc/route.go",
		from: "func(r *http.Request) (string, error) { return routeKey(r.Pattern), nil }",
		to:   "func(r *http.Request) (string, error) { return routeKey(r.Pattern + r.URL.Path), nil }",
	},
}

package main

// httpFaults are mistakes in the middleware.
var httpFaults = []fault{
	{
		promise: "C1", name: "http: the release is not deferred",
		file: "httpmw/held.go",
		from: "	defer func() { h.finish(held, watched, r, returned) }()\n	if !h.admit(&held.lease, w, r) {\n		return\n	}\n",
		to:   "	if !h.admit(&held.lease, w, r) {\n		return\n	}\n	defer func() {\n		if returned {\n			h.finish(held, watched, r, returned)\n		}\n	}()\n",
	},
	{
		promise: "C1", name: "http: a hijacked connection never frees its slot",
		file: "httpmw/hijack.go",
		from: "	s.once.Do(func() { s.held.done(algo.Ignored) })\n",
		to:   "	s.once.Do(func() { _ = algo.Ignored })\n",
	},
	{
		promise: "C1", name: "http: a hijacked connection frees its slot with the handler",
		file: "httpmw/hijack.go",
		from: "	h.users.Add(1)\n",
		to:   "",
	},
	{
		promise: "C1", name: "http: a delay that was canceled stays charged",
		file: "httpmw/admit.go",
		from: "	lease.Release(algo.Canceled)\n",
		to:   "",
	},
	{
		promise: "C2", name: "http: server-sent events teach",
		file: "httpmw/held.go",
		from: "status >= http.StatusBadRequest, streams(w, r), errors",
		to:   "status >= http.StatusBadRequest, errors",
	},
	{
		promise: "C2", name: "http: requests whose client went away teach",
		file: "httpmw/held.go",
		from: "streams(w, r), errors.Is(r.Context().Err(), context.Canceled):",
		to:   "streams(w, r), r.Context() == nil && errors.Is(nil, context.Canceled):",
	},
	{
		promise: "-", name: "http: 429 for overload",
		file: "httpmw/rule.go",
		from: "	if d.Reason != algo.Overload {",
		to:   "	if d.Reason != 255 {",
	},
	{
		promise: "U2", name: "http: Retry-After is rounded down",
		file: "httpmw/rule.go",
		from: "	if d%time.Second > 0 {\n		s++\n	}\n",
		to:   "",
	},
	{
		promise: "U2", name: "http: jitter makes Retry-After shorter",
		file: "httpmw/refusal.go",
		from: "return s + rand.Int64N(room+1)",
		to:   "return s - rand.Int64N(room+1)",
	},
	{
		promise: "-", name: "http: a second limiter overwrites the fields of the first",
		file: "httpmw/fields.go",
		from: "		line = append(before[:len(before):len(before)], line...)\n",
		to:   "",
	},
	{
		promise: "-", name: "http: Retry-After stands twice",
		file: "httpmw/refusal.go",
		from: "		h[retryAfterField] = values[3:4:4]\n",
		to:   "		h[retryAfterField] = []string{values[3], values[3]}\n",
	},
	{
		promise: "W1", name: "http: an error of the limiter means allow",
		file: "httpmw/asking.go",
		from: "	case g.onError == FailClosed, r.Context().Err() != nil,",
		to:   "	case r.Context().Err() != nil,",
	},
	{
		promise: "W1", name: "http: FailOpen lets a negative cost pass",
		file: "httpmw/asking.go",
		from: "		errors.Is(err, algo.ErrCost), errors.Is(err, algo.ErrWait):",
		to:   "		errors.Is(err, algo.ErrWait):",
	},
	{
		promise: "W1", name: "http: a negative cost is one unit",
		file: "httpmw/rule.go",
		from: "			return \"\", 0, charge, errNegative\n",
		to:   "			n = 1\n",
	},
	{
		promise: "S2", name: "http: a denial echoes the path",
		file: "httpmw/refusal.go",
		from: "		values[2], body = plainType, plainBody(a.status)\n",
		to:   "		values[2], body = plainType, plainBody(a.status)+r.URL.Path\n",
	},
}

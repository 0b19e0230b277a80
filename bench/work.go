package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// works are all groups, in the order in which they are run and reported.
func works() []work {
	return slices.Concat(
		andOnTwo(work{id: "bucket", title: "One bucket, admitted", us: oursAllow, make: oneBucket}),
		[]work{{id: "bucket-denied", title: "One bucket, denied", cores: 1, denied: true, us: oursAllow, make: oneEmptyBucket}},
		inFlightWorks("inflight", "Fixed in-flight limit", fixedLimit,
			func() []gate { return fixedGates(1000) }, func() []gate { return fixedGates(1) }),
		inFlightWorks("adaptive", "Adaptive in-flight limit", bbrLimit,
			func() []gate { return adaptiveGates(true) }, func() []gate { return adaptiveGates(false) }),
		keyedWorks(1<<10), keyedWorks(1<<17),
		[]work{
			{id: "window", title: "One sliding window, admitted", cores: 1, us: oursAllow, make: slidingWindows},
			{id: "http", title: "HTTP middleware by client address, admitted", cores: 1, us: httpHeaders, over: true,
				make: func() []contender { return overHTTP(plenty) }},
			{id: "http-denied", title: "HTTP middleware by client address, denied", cores: 1, denied: true, us: httpHeaders, over: true,
				make: func() []contender { return overHTTP(nothing) }},
			{id: "grpc", title: "gRPC unary interceptor, admitted", cores: 1, us: "sluice PeerIP", over: true, make: overGRPC},
			{id: "throttle", title: "Client-side throttle, admitted and accepted", cores: 1, us: throttleOurs, make: throttles},
		})
}

// andOnTwo is work on one core, and on two.
func andOnTwo(w work) []work {
	w.cores = 1
	two := w
	two.id, two.cores, two.title = w.id+"-2", 2, w.title+", two goroutines on two cores"
	return []work{w, two}
}

// inFlightWorks are the gates with places, and without.
func inFlightWorks(id, title, us string, places, none func() []gate) []work {
	return append(andOnTwo(work{id: id, title: title + ", admitted and released", us: us, make: func() []contender { return asked(places()) }}),
		work{id: id + "-denied", title: title + ", denied", cores: 1, denied: true, us: us, make: func() []contender { return full(none()) }})
}

func keyedWorks(n int) []work {
	return andOnTwo(work{id: "keyed-" + strconv.Itoa(n), us: oursAllow, warm: n, title: strconv.Itoa(n) + " keys, all seen before and live",
		make: func() []contender { return keyed(keys(n)) }})
}

// keys are n names in random order, so that neither a table nor a cache line
// meets them in the order in which they were made.
func keys(n int) []string {
	ks := make([]string, n)
	for i := range ks {
		ks[i] = "user-" + strconv.Itoa(i*7919)
	}
	order := rand.New(rand.NewPCG(1, 2))
	order.Shuffle(n, func(i, j int) { ks[i], ks[j] = ks[j], ks[i] })
	return ks
}

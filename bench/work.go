package main

import (
	"math/rand/v2"
	"strconv"
)

// works are all groups, in the order in which they are run and reported.
func works() []work {
	all := []work{
		{id: "bucket", title: "One bucket, admitted", cores: 1, us: oursAllow, make: oneBucket},
		{id: "bucket-2", title: "One bucket, admitted, two goroutines on two cores", cores: 2, us: oursAllow, make: oneBucket},
		{id: "bucket-denied", title: "One bucket, denied", cores: 1, denied: true, us: oursAllow, make: oneEmptyBucket},
	}
	all = append(all, inFlightWorks("inflight", "Fixed in-flight limit", fixedLimit,
		func() []gate { return fixedGates(1000) }, func() []gate { return fixedGates(1) })...)
	all = append(all, inFlightWorks("adaptive", "Adaptive in-flight limit", bbrLimit,
		func() []gate { return adaptiveGates(true) }, func() []gate { return adaptiveGates(false) })...)
	for _, n := range []int{1 << 10, 1 << 17} {
		for _, cores := range []int{1, 2} {
			all = append(all, keyedWork(n, cores))
		}
	}
	return append(all,
		work{id: "window", title: "One sliding window, admitted", cores: 1, us: oursAllow, make: slidingWindows},
		work{id: "http", title: "HTTP middleware by client address, admitted", cores: 1, us: httpHeaders, over: true,
			make: func() []contender { return overHTTP(plenty) }},
		work{id: "http-denied", title: "HTTP middleware by client address, denied", cores: 1, denied: true, us: httpHeaders, over: true,
			make: func() []contender { return overHTTP(nothing) }},
		work{id: "grpc", title: "gRPC unary interceptor, admitted", cores: 1, us: "sluice PeerIP", over: true, make: overGRPC},
		work{id: "throttle", title: "Client-side throttle, admitted and accepted", cores: 1, us: throttleOurs, make: throttles},
	)
}

// inFlightWorks are the gates with places, on one core and on two, and without.
func inFlightWorks(id, title, us string, places, none func() []gate) []work {
	admitted := work{id: id, title: title + ", admitted and released", cores: 1, us: us,
		make: func() []contender { return asked(places()) }}
	two := admitted
	two.id, two.cores, two.title = id+"-2", 2, admitted.title+", two goroutines on two cores"
	return []work{admitted, two, {id: id + "-denied", title: title + ", denied", cores: 1, denied: true, us: us,
		make: func() []contender { return full(none()) }}}
}

func keyedWork(n, cores int) work {
	w := work{id: "keyed-" + strconv.Itoa(n), cores: cores, us: oursAllow, warm: n,
		title: strconv.Itoa(n) + " keys, all seen before and live",
		make:  func() []contender { return keyed(keys(n)) }}
	if cores == 2 {
		w.id += "-2"
		w.title += ", two goroutines on two cores"
	}
	return w
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

// must is for the set-up of contenders, which are wired in the code.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

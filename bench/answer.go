package main

import (
	"fmt"
	"strings"
	"time"
)

// everyday is work that a service adds to each of its requests, in the words of its
// owner.
var everyday = []struct{ what, id, name string }{
	{"one bucket for all", "bucket", oursAcquire},
	{"a bucket for each of 131 072 keys", "keyed-131072", oursAcquire},
	{"HTTP, by client address, with RateLimit fields", "http", httpHeaders},
	{"HTTP, by client address, without fields", "http", httpNone},
	{"gRPC, by peer address", "grpc", "sluice PeerIP"},
	{"a fixed number in flight", "inflight", fixedLimit},
	{"overload protection (Default)", "adaptive", defaultLimit},
	{"on Redis on the same machine, alone", "redis-lone", redisExact},
	{"on Redis, one of 256 at once", "redis", redisExact},
}

// answer begins the page with the main result: the library's share of a
// processor at a rate that one process seldom exceeds.
func (r report) answer(b *strings.Builder) {
	const rate = 10_000
	var rows strings.Builder
	for _, e := range everyday {
		for _, res := range r.results {
			x, ok := res.row(e.name)
			if res.id != e.id || !ok {
				continue
			}
			took := x.median()
			if res.over {
				took = res.overFloor(x)
			}
			share := fmt.Sprintf("%.2f %%", 100*took*rate/1e9)
			if strings.HasPrefix(e.id, "redis") {
				share = "" // most of it is waiting
			}
			fmt.Fprintf(&rows, "| %s | %v | %s | %g |\n", e.what, threeDigits(took), share, x.allocs)
		}
	}
	if rows.Len() == 0 {
		return
	}
	fmt.Fprintf(b, "## Is it fast enough?\n\nThe time that a decision adds to a request, and the share of one processor that %d requests a second use.\n\n"+
		"| a limit | time | of a processor | allocations |\n|---|--:|--:|--:|\n%s\n", rate, rows.String())
}

// threeDigits is a time in nanoseconds to three digits.
func threeDigits(ns float64) time.Duration {
	d := time.Duration(ns)
	if d > 10*time.Microsecond {
		return d.Round(100 * time.Nanosecond)
	}
	return d.Round(time.Nanosecond)
}

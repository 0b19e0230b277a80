package main

import (
	"fmt"
	"strings"
)

// target is a goal of sluice, and the result of this run.
type target struct {
	what, unit string
	limit, got float64
}

func (t target) met() bool { return t.got <= t.limit }

// verdict says by how much, as a share of the limit.
func (t target) verdict() string {
	share := 100 * (t.got/t.limit - 1)
	switch {
	case t.got == t.limit:
		return "met"
	case t.met():
		return fmt.Sprintf("met, %.0f %% to spare", -share)
	case t.limit == 0:
		return "MISSED by " + t.show(t.got)
	}
	return fmt.Sprintf("MISSED by %.0f %%", share)
}

func (t target) show(x float64) string {
	digits := 0
	switch {
	case !strings.HasPrefix(t.unit, "x "):
	case t.limit < 0.1:
		digits = 3
	default:
		digits = 2
	}
	return fmt.Sprintf("%.*f %s", digits, x, t.unit)
}

// targets are those that this program measures. Work that was not run is left out.
func targets(rs []result, prints []footprint) (ts []target) {
	const (
		floors, nanos, allocs = "x the floor", "ns", "allocations"
		ofRate, both          = "x the time of " + redisRate, oursAcquire
	)
	goal := func(id, name, unit string, limit float64) {
		for _, r := range rs {
			x, ok := r.row(name)
			if !ok || r.id != id {
				continue
			}
			t := target{r.title + ": " + name, unit, limit, x.median()}
			switch {
			case unit == allocs:
				t.got = x.allocs
			case unit == ofRate:
				y, _ := r.row(redisRate)
				t.got = r.versus(x, y)
			case unit == floors:
				t.got = r.overFloor(x)
			case r.over:
				t.what, t.got = t.what+", over the bare handler", r.overFloor(x)
			}
			ts = append(ts, t)
		}
	}
	goal("bucket", oursAllow, floors, 1.25)
	goal("bucket", both, floors, 1.7)
	goal("bucket", both, allocs, 0)
	goal("keyed-1024", oursAllow, nanos, 45)
	goal("keyed-1024", both, nanos, 60)
	goal("keyed-131072", oursAllow, nanos, 70)
	goal("keyed-131072", both, nanos, 85)
	goal("keyed-131072", both, allocs, 0)
	for _, p := range prints {
		if p.library == sluice {
			ts = append(ts, target{"A live key, of many", "bytes", 40, p.bytes})
		}
	}
	goal("http", httpHeaders, nanos, 250)
	goal("http", httpHeaders, allocs, 2)
	goal("http", httpNone, nanos, 130)
	goal("http", httpNone, allocs, 0)
	goal("grpc", "sluice PeerIP", nanos, 120)
	goal("grpc", "sluice PeerIP", allocs, 0)
	for _, w := range []struct{ id, name string }{{"inflight", fixedLimit}, {"adaptive", bbrLimit}, {"adaptive", defaultLimit}} {
		goal(w.id, w.name, nanos, 90)
		goal(w.id, w.name, allocs, 0)
		goal(w.id+"-denied", w.name, nanos, 40)
		goal(w.id+"-denied", w.name, allocs, 0)
	}
	goal("redis-lone", redisExact, floors, 1.6)
	goal("redis-256", redisExact, ofRate, 1.0/3)
	goal("redis-hot", redisBlocks, ofRate, 1.0/50)
	goal("redis-denied", redisCache, ofRate, 1.0/50)
	return ts
}

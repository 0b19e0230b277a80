package main

import (
	"fmt"
	"strings"
)

// target is a goal of sluice, and the result of this run.
type target struct {
	what  string
	unit  string
	limit float64
	got   float64
}

func (t target) met() bool { return t.got <= t.limit }

// verdict says by how much, as a share of the limit.
func (t target) verdict() string {
	if t.limit == 0 {
		if t.met() {
			return "met"
		}
		return "MISSED by " + t.show(t.got)
	}
	share := 100 * (t.got/t.limit - 1)
	switch {
	case t.got == t.limit:
		return "met"
	case t.met():
		return fmt.Sprintf("met, %.0f %% to spare", -share)
	}
	return fmt.Sprintf("MISSED by %.0f %%", share)
}

func (t target) show(x float64) string {
	switch {
	case !strings.HasPrefix(t.unit, "x "):
	case t.limit < 0.1:
		return fmt.Sprintf("%.3f %s", x, t.unit)
	default:
		return fmt.Sprintf("%.2f %s", x, t.unit)
	}
	return fmt.Sprintf("%.0f %s", x, t.unit)
}

// targets are those that this program measures. Work that was not run is left out.
func targets(rs []result, prints []footprint) (ts []target) {
	find := func(id, name string) (result, row, bool) {
		for _, r := range rs {
			if r.id == id {
				x, ok := r.row(name)
				return r, x, ok
			}
		}
		return result{}, row{}, false
	}
	multiple := func(id, name string, limit float64) {
		if r, x, ok := find(id, name); ok {
			ts = append(ts, target{r.title + ": " + name, "x the floor", limit, r.overFloor(x)})
		}
	}
	nanos := func(id, name string, limit float64) {
		if r, x, ok := find(id, name); ok {
			ts = append(ts, target{r.title + ": " + name, "ns", limit, x.median()})
		}
	}
	over := func(id, name string, limit float64) {
		if r, x, ok := find(id, name); ok {
			ts = append(ts, target{r.title + ": " + name + ", over the bare handler", "ns", limit, r.overFloor(x)})
		}
	}
	allocs := func(id, name string, limit float64) {
		if r, x, ok := find(id, name); ok {
			ts = append(ts, target{r.title + ": " + name, "allocations", limit, x.allocs})
		}
	}
	const both = oursAcquire
	multiple("bucket", oursAllow, 1.25)
	multiple("bucket", both, 1.7)
	allocs("bucket", both, 0)
	nanos("keyed-1024", oursAllow, 45)
	nanos("keyed-1024", both, 60)
	nanos("keyed-131072", oursAllow, 70)
	nanos("keyed-131072", both, 85)
	allocs("keyed-131072", both, 0)
	for _, p := range prints {
		if p.library == sluice {
			ts = append(ts, target{"A live key, of many", "bytes", 40, p.bytes})
		}
	}
	over("http", httpHeaders, 250)
	allocs("http", httpHeaders, 2)
	over("http", httpNone, 130)
	allocs("http", httpNone, 0)
	over("grpc", "sluice PeerIP", 120)
	allocs("grpc", "sluice PeerIP", 0)
	for _, w := range []struct{ id, name string }{{"inflight", fixedLimit}, {"adaptive", bbrLimit}, {"adaptive", defaultLimit}} {
		nanos(w.id, w.name, 90)
		allocs(w.id, w.name, 0)
		nanos(w.id+"-denied", w.name, 40)
		allocs(w.id+"-denied", w.name, 0)
	}
	multiple("redis-lone", redisExact, 1.6)
	share := func(id, name, of string, limit float64) {
		if r, x, ok := find(id, name); ok {
			if y, ok := r.row(of); ok {
				ts = append(ts, target{r.title + ": " + name, "x the time of " + of, limit, r.versus(x, y)})
			}
		}
	}
	share("redis-256", redisExact, redisRate, 1.0/3)
	share("redis-hot", redisBlocks, redisRate, 1.0/50)
	share("redis-denied", redisCache, redisRate, 1.0/50)
	return ts
}

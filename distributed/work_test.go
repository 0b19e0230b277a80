package distributed_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// microsEach is how long the server works on each script that f sends, by its own measurement.
func microsEach(t *testing.T, s *redistest.Server, f func()) float64 {
	s.Do("CONFIG", "RESETSTAT")
	f()
	for _, line := range strings.Split(fmt.Sprint(s.Do("INFO", "commandstats")), "\n") {
		if _, rest, ok := strings.Cut(line, "cmdstat_evalsha:"); ok {
			_, each, _ := strings.Cut(rest, "usec_per_call=")
			each, _, _ = strings.Cut(each, ",")
			return must[float64](t)(strconv.ParseFloat(each, 64))
		}
	}
	t.Fatal("no script was counted")
	return 0
}

// What clients and customers add makes no decision longer: the server's time of each is about the same
// where a key holds 10, 1000 and 10 000 of it.
func TestWorkDoesNotGrow(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Client(), distributed.WithInstances(1))
	credits := must[*distributed.Credits](t)(store.Credits("credits"))
	slots := must[*distributed.Limiter](t)(store.InFlight("slots", 10_000, time.Minute))
	log := must[*distributed.Limiter](t)(store.SlidingLog("log", algo.PerDay(10_000)))
	type held struct {
		add    func(key string, i int)
		decide func(key string, i int)
	}
	spend := func(l algo.Limiter) func(string, int) {
		return func(key string, _ int) {
			lease := acquire(t, l, key, 1)
			lease.Release(algo.Canceled)
		}
	}
	for name, h := range map[string]held{
		"receipts, spend": {func(key string, i int) { require.NoError(t, credits.TopUp(ctx, key, fmt.Sprint("payment", i), 1)) }, spend(credits)},
		"receipts, top up": {
			func(key string, i int) { require.NoError(t, credits.TopUp(ctx, "t"+key, fmt.Sprint("payment", i), 1)) },
			func(key string, i int) { require.NoError(t, credits.TopUp(ctx, "t"+key, fmt.Sprint("again", i), 1)) },
		},
		"units in flight": {func(key string, _ int) { acquire(t, slots, key, 1) }, spend(slots)},
		"units of a log":  {func(key string, _ int) { acquire(t, log, key, 1) }, spend(log)},
	} {
		var each []float64
		for _, n := range []int{10, 1000, 9900} {
			key := fmt.Sprint(n)
			for i := range n {
				h.add(key, i)
			}
			each = append(each, microsEach(t, server, func() {
				for i := range 50 {
					h.decide(key, i)
				}
			}))
		}
		t.Logf("%s: %.1f us of the server with 10, %.1f with 1000, %.1f with 9900", name, each[0], each[1], each[2])
		require.Less(t, each[2], 5*each[0]+20, "%s: in proportion to the number it would be a thousand times", name)
	}
}

package httpmw_test

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// The herd: clients that all begin at once. Each waits for Retry-After after a
// denial and goes on at once after an admission.
const (
	herdRate  = 100 // a second
	herdBurst = 10
	herdTime  = 6 * time.Second
)

// herd returns how many requests of n clients were served in time. ask sends one, and
// returns the wait of a denial.
func herd(n int, ask func() (wait time.Duration, served bool)) (total int64) {
	var served atomic.Int64
	var clients sync.WaitGroup
	start := time.Now()
	for range n {
		clients.Go(func() {
			for time.Since(start) < herdTime {
				wait, ok := ask()
				if ok && time.Since(start) <= herdTime {
					served.Add(1)
				}
				time.Sleep(wait)
			}
		})
	}
	clients.Wait()
	return served.Load()
}

// Clients that read the exact wait use all units of the bucket: a herd of them
// dissolves, and a single client loses nothing.
func TestHerd(t *testing.T) {
	const had = herdBurst + herdRate*int64(herdTime/time.Second)
	for _, n := range []int{1, 20, 400} {
		synctest.Test(t, func(t *testing.T) {
			h := httpmw.Limit(bucket(t, algo.PerSecond(herdRate), algo.Burst(herdBurst)), key("k"))(ok)
			served := herd(n, func() (wait time.Duration, ok bool) {
				w := serve(h, get())
				ms, _ := strconv.Atoi(w.Result().Header.Get("Retry-After-Ms"))
				return time.Duration(ms) * time.Millisecond, w.Code == http.StatusOK
			})
			t.Logf("%d clients: %d of %d served", n, served, had)
			require.GreaterOrEqual(t, float64(served), .9*float64(had))
		})
	}
}

// Clients that begin together, in step to the microsecond, and wait whole seconds come at whole
// seconds, whatever Retry-After is: they find the burst, never more. A burst of a second of the rate,
// which is the default for a rate per second, gives them everything, and so does a limiter that lets
// them wait for a second. Requests that take 50 to 300 ms leave the step.
func TestHerdOfWholeSeconds(t *testing.T) {
	const instants = int64(herdTime / time.Second) // at which they come, the first one included
	small := []algo.Option{algo.Burst(herdBurst)}
	for name, row := range map[string]struct {
		opts []algo.Option
		lag  time.Duration
		had  int64 // the units of the bucket at these instants
		part float64
	}{
		"default burst": {nil, 0, herdRate * instants, 1},
		"small burst":   {small, 0, herdBurst * instants, 1},
		"waiting":       {append(small, algo.MaxWait(time.Second)), 0, herdBurst + herdRate*instants, .9},
		"on a network":  {small, 250 * time.Millisecond, herdBurst + herdRate*instants, .9},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := httpmw.Limit(bucket(t, algo.PerSecond(herdRate), row.opts...), key("k"))(ok)
			served := herd(400, wholeSeconds(h, row.lag))
			t.Logf("%s: %d of %d served", name, served, row.had)
			require.GreaterOrEqual(t, float64(served), row.part*float64(row.had), name)
		})
	}
}

// wholeSeconds asks h, after 50 ms and up to lag more unless lag is 0, and waits for Retry-After.
func wholeSeconds(h http.Handler, lag time.Duration) func() (wait time.Duration, served bool) {
	return func() (time.Duration, bool) {
		if lag > 0 {
			time.Sleep(50*time.Millisecond + rand.N(lag))
		}
		w := serve(h, get())
		s, _ := strconv.Atoi(w.Result().Header.Get("Retry-After"))
		return time.Duration(s) * time.Second, w.Code == http.StatusOK
	}
}

// S5: of a limiter that lets requests wait for a second, clients in step that read whole seconds
// use at least .8, whatever its rate and burst and however many they are.
func TestWholeSecondsAndMaxWait(t *testing.T) {
	least := 1.
	for seed := range cases.Count(50, 400) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 56))
			rate := int64(math.Exp(rnd.Float64() * math.Log(1000)))
			burst, clients := 1+rnd.Int64N(rate), 1+rnd.IntN(500)
			limiter := bucket(t, algo.PerSecond(rate), algo.Burst(burst), algo.MaxWait(time.Second))
			served := herd(clients, wholeSeconds(httpmw.Limit(limiter, key("k"))(ok), 0))
			part := float64(served) / float64(burst+rate*int64(herdTime/time.Second))
			require.GreaterOrEqual(t, part, .8, "%d clients at %d/s with a burst of %d", clients, rate, burst)
			least = min(least, part)
		})
	}
	t.Logf("at least %.2f", least)
}

// The exact wait suffices, whatever it is.
func TestU2_RetryAfterMsSuffices(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 333 * time.Microsecond, 700 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := httpmw.Limit(bucket(t, algo.Every(every), algo.Burst(3)), key("k"))(ok)
			for range 100 {
				w := serve(h, get())
				for ; w.Code == http.StatusOK; w = serve(h, get()) {
				}
				ms, err := strconv.Atoi(w.Result().Header.Get("Retry-After-Ms"))
				require.NoError(t, err)
				time.Sleep(time.Duration(ms) * time.Millisecond)
				require.Equal(t, http.StatusOK, serve(h, get()).Code)
			}
		})
	}
}

// Where the state of the limit must not show, neither does the exact wait.
func TestNoRetryAfterMs(t *testing.T) {
	h := ask(denying(algo.Quota, time.Second), httpmw.WithHeaders(httpmw.None)).Result().Header
	require.NotEmpty(t, h.Get("Retry-After"))
	require.Empty(t, h.Get("Retry-After-Ms"))
}

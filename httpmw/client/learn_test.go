package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

// provider answers 30 requests a second, with a burst of 6, and denies the others.
type provider struct {
	limit      algo.Limiter
	fields     func(http.Header, *algo.Decision)
	ok, denied atomic.Int64
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(30 * time.Millisecond)
	lease, err := p.limit.Acquire(r.Context(), "", 1)
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	p.fields(w.Header(), &lease.Decision)
	if lease.Allowed {
		p.ok.Add(1)
	} else {
		p.denied.Add(1)
		w.WriteHeader(http.StatusTooManyRequests)
	}
	time.Sleep(30 * time.Millisecond)
	return w.Result(), nil
}

// use sends requests of 100 workers for d, and returns those answered in the last half, each
// second, and those denied in it.
func (p *provider) use(t *testing.T, l algo.Limiter, d time.Duration) (ok, denied float64) {
	c := &http.Client{Transport: client.Transport(p, l, keyfunc.Global())}
	end := time.Now().Add(d)
	var workers sync.WaitGroup
	for range 100 {
		workers.Go(func() {
			for time.Now().Before(end) {
				resp, err := c.Get("http://provider/")
				if err == nil {
					err = resp.Body.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(d / 2)
	p.ok.Store(0)
	p.denied.Store(0)
	time.Sleep(d / 2)
	ok, denied = float64(p.ok.Load())/(d/2).Seconds(), float64(p.denied.Load())
	workers.Wait()
	return ok, denied
}

func TestLearnedLimits(t *testing.T) {
	for _, row := range []struct {
		name   string
		fields func(http.Header, *algo.Decision)
		least  float64 // requests a second
		most   float64 // denied in a minute
	}{
		{"no fields", func(http.Header, *algo.Decision) {}, 28.5, 20},
		{"whole seconds", func(h http.Header, d *algo.Decision) {
			if !d.Allowed {
				h.Set("Retry-After", strconv.Itoa(int((d.RetryAfter+time.Second-1)/time.Second)))
			}
		}, 27, 6},
		{"2 seconds", func(h http.Header, d *algo.Decision) {
			if !d.Allowed {
				h.Set("Retry-After", "2")
			}
		}, 26, 4},
		{"a policy", func(h http.Header, d *algo.Decision) { h.Set("RateLimit-Policy", `"p";q=30;w=1`) }, 29.5, 0},
		{"a policy of draft 7", func(h http.Header, d *algo.Decision) {
			h.Set("RateLimit-Policy", "30;w=1, 9000;w=60;comment=\"burst\"")
		}, 29.5, 0},
		{"a bucket's rest", func(h http.Header, d *algo.Decision) {
			h.Set("X-RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
			h.Set("X-RateLimit-Reset", d.ResetAfter.String())
		}, 28.5, 20},
		{"a policy of twice as much", func(h http.Header, d *algo.Decision) { h.Set("RateLimit-Policy", `"p";q=60;w=1`) }, 25, 60},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &provider{limit: algo.Must(algo.NewTokenBucket(algo.PerSecond(30), algo.Burst(6))), fields: row.fields}
				ok, denied := p.use(t, learn.New(algo.Rate{}), 2*time.Minute)
				line := fmt.Sprintf("%.1f a second, %.0f denied", ok, denied)
				t.Log(line)
				require.GreaterOrEqual(t, ok, row.least, line)
				require.LessOrEqual(t, denied, row.most, line)
			})
		})
	}
}

// TestAHigherLimitIsFound: nine tenths of a limit that has grown tenfold are in use within the time
// that the guide and package learn state.
func TestAHigherLimitIsFound(t *testing.T) {
	for name, fields := range map[string]func(http.Header, *algo.Decision){
		"no fields": func(http.Header, *algo.Decision) {},
		"2 seconds": func(h http.Header, d *algo.Decision) {
			if !d.Allowed {
				h.Set("Retry-After", "2")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bucket := algo.Must(algo.NewTokenBucket(algo.PerSecond(30), algo.Burst(6)))
				p, l := &provider{limit: bucket, fields: fields}, learn.New(algo.Rate{})
				p.use(t, l, 2*time.Minute)
				require.NoError(t, bucket.SetRate(algo.PerSecond(300)))
				require.NoError(t, bucket.SetBurst(60))
				grown, ok := time.Now(), 0.
				for ok < 270 {
					ok, _ = p.use(t, l, 5*time.Second)
				}
				t.Log(time.Since(grown))
				require.Less(t, time.Since(grown), 70*time.Second)
			})
		})
	}
}

// A denial teaches the limit that was chosen for the request, and no other.
func TestTheChosenLimitLearns(t *testing.T) {
	large, small := learn.New(algo.PerSecond(100)), learn.New(algo.PerSecond(10))
	l := algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if key == "large" {
			return large
		}
		return small
	}, large, small)
	denies := func(*http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusTooManyRequests)
		return w.Result(), nil
	}
	var rates []float64 // in events
	observe := client.WithObserver(func(e telemetry.Event) { rates = append(rates, e.Rate) })
	c := &http.Client{Transport: client.Transport(roundTrip(denies), l, func(r *http.Request) (string, error) { return r.URL.Host, nil }, observe)}
	resp, err := c.Get("http://small/")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	rate := small.Stats("small").Rate
	require.Less(t, rate, 10.)
	require.Equal(t, learn.Stats{Rate: 100}, large.Stats("small"))
	require.Equal(t, []float64{10}, rates)
}

// A window whose rest and reset are stated is used evenly, without a denial.
func TestStatedWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{limit: algo.Must(algo.NewFixedWindow(algo.PerMinute(600)))}
		p.fields = func(h http.Header, d *algo.Decision) {
			h.Set("X-RateLimit-Remaining-Requests", strconv.FormatInt(d.Remaining, 10))
			h.Set("X-RateLimit-Reset-Requests", time.Now().Add(d.ResetAfter).Format(time.RFC3339))
			h.Set("X-RateLimit-Remaining-Tokens", "1")
			h.Set("X-RateLimit-Reset-Tokens", "1h")
		}
		ok, denied := p.use(t, learn.New(algo.Rate{}), 6*time.Minute)
		require.InDelta(t, 10, ok, .5)
		require.Zero(t, denied)
	})
}

package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/stretchr/testify/require"
)

// algorithms are all limiters of package algo, so tight that few requests are
// admitted at once, and one more within 5 s: below that Retry-After has no jitter.
var algorithms = map[string]func() algo.Limiter{
	"TokenBucket": func() algo.Limiter { return algo.Must(algo.NewTokenBucket(slow, algo.Burst(2))) },
	"TokenBucket, MaxWait": func() algo.Limiter {
		return algo.Must(algo.NewTokenBucket(slow, algo.Burst(2), algo.MaxWait(time.Second)))
	},
	"LeakyBucket":          func() algo.Limiter { return algo.Must(algo.NewLeakyBucket(slow, algo.Burst(2))) },
	"Pacer":                func() algo.Limiter { return algo.Must(algo.NewPacer(slow)) },
	"Pacer, Slack":         func() algo.Limiter { return algo.Must(algo.NewPacer(slow, algo.Slack(1), algo.MaxQueue(0))) },
	"FixedWindow":          func() algo.Limiter { return algo.Must(algo.NewFixedWindow(twice)) },
	"FixedWindow, Spread":  func() algo.Limiter { return algo.Must(algo.NewFixedWindow(twice, algo.Spread())) },
	"SlidingWindow":        func() algo.Limiter { return algo.Must(algo.NewSlidingWindow(twice)) },
	"SlidingWindow, Cells": func() algo.Limiter { return algo.Must(algo.NewSlidingWindow(twice, algo.Cells(4))) },
	"SlidingLog":           func() algo.Limiter { return algo.Must(algo.NewSlidingLog(twice)) },
	"Strict":               func() algo.Limiter { return algo.Must(algo.NewStrict(twice)) },
	"Nginx":                func() algo.Limiter { return algo.Must(algo.NewNginx(slow)) },
	"Nginx, NoDelay":       func() algo.Limiter { return algo.Must(algo.NewNginx(slow, algo.Burst(1), algo.NoDelay())) },
	"Nginx, DelayAfter": func() algo.Limiter {
		return algo.Must(algo.NewNginx(slow, algo.Burst(2), algo.DelayAfter(1)))
	},
	"SmoothBursty":    func() algo.Limiter { return algo.Must(algo.NewSmoothBursty(slow)) },
	"SmoothWarmingUp": func() algo.Limiter { return algo.Must(algo.NewSmoothWarmingUp(algo.PerSecond(1), 2*time.Second)) },
	"NewSRTCM":        func() algo.Limiter { return marked(algo.Yellow)(algo.NewSRTCM(slow, 1, 1)) },
	"NewTRTCM":        func() algo.Limiter { return marked(algo.Yellow)(algo.NewTRTCM(slow, 1, slow, 2)) },
	"NewRFC4115":      func() algo.Limiter { return marked(algo.Green)(algo.NewRFC4115(slow, 1, slow, 1)) },
	"All": func() algo.Limiter {
		return algo.All(algo.Must(algo.NewTokenBucket(slow, algo.Burst(2))), algo.Must(algo.NewFixedWindow(twice)))
	},
}

var (
	slow  = algo.Every(3 * time.Second)
	twice = algo.Per(2, 2*time.Second)
)

// marked denies what a new marker makes redder than pass.
func marked(pass algo.Color) func(algo.Marker, error) algo.Limiter {
	return func(m algo.Marker, err error) algo.Limiter {
		if err != nil {
			panic(err)
		}
		return algo.FromMarker(m, pass)
	}
}

// A client that waits for Retry-After succeeds, whichever algorithm denied it;
// one that comes a second earlier is denied again. And every answer on the way
// has well-formed fields.
func TestRetryAfterOfEveryAlgorithm(t *testing.T) {
	for name, limiter := range algorithms {
		for _, early := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", early"}[early], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(1234567 * time.Microsecond) // no window begins here
					h := httpmw.Limit(limiter(), key("k"), httpmw.WithName("p"))(ok)
					after := retryAfter(t, exhaust(t, h))
					if early {
						time.Sleep(after - time.Second)
						require.Equal(t, http.StatusTooManyRequests, serve(h, get()).Code)
						return
					}
					time.Sleep(after)
					w := serve(h, get())
					require.Equal(t, http.StatusOK, w.Code)
					requireFields(t, w.Result().Header)
				})
			})
		}
	}
}

// exhaust sends requests until one is denied. It does not wait for those that
// are delayed, which would give the limiter time.
func exhaust(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	answers := make(chan *httptest.ResponseRecorder, 10)
	for range cap(answers) {
		go func() { answers <- serve(h, get().WithContext(t.Context())) }()
		synctest.Wait()
		for len(answers) > 0 {
			w := <-answers
			requireFields(t, w.Result().Header)
			if w.Code != http.StatusOK {
				return w
			}
		}
	}
	t.Fatal("nothing was denied")
	return nil
}

func retryAfter(t *testing.T, w *httptest.ResponseRecorder) time.Duration {
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	s, err := strconv.Atoi(w.Result().Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Less(t, s, 5, "there is jitter")
	return time.Duration(s) * time.Second
}

// requireFields requires one item of the policy p in both fields, and that they
// agree with each other.
func requireFields(t *testing.T, h http.Header) {
	policies, limits := structured(t, h, policyField), structured(t, h, limitField)
	require.Len(t, policies, 1)
	require.Len(t, limits, 1)
	policy, limit := policies[0].(httpsfv.Item), limits[0].(httpsfv.Item)
	require.Equal(t, "p", policy.Value)
	require.Equal(t, "p", limit.Value)
	q, _ := policy.Params.Get("q")
	r, _ := limit.Params.Get("r")
	require.LessOrEqual(t, r, q)
	if _, timed := limit.Params.Get("t"); !timed {
		require.Equal(t, q, r, "t is left out when nothing is spent")
	}
}

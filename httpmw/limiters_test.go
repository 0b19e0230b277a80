package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// algorithms are limits so tight that few requests are admitted at once, and one more within
// 5 s: below that Retry-After has no jitter.
var algorithms = map[string]func() algo.Limiter{
	"NewSRTCM":   func() algo.Limiter { return marked(marker.Yellow)(marker.NewSRTCM(slow, 1, 1)) },
	"NewTRTCM":   func() algo.Limiter { return marked(marker.Yellow)(marker.NewTRTCM(slow, 1, slow, 2)) },
	"NewRFC4115": func() algo.Limiter { return marked(marker.Green)(marker.NewRFC4115(slow, 1, slow, 1)) },
	"All": func() algo.Limiter {
		return algo.All(algo.Must(algo.NewTokenBucket(slow, algo.Burst(2))), algo.Must(algo.NewFixedWindow(twice)))
	},
}

var (
	slow  = algo.Every(3 * time.Second)
	twice = algo.Per(2, 2*time.Second)
)

// marked denies requests that a new marker makes redder than pass.
func marked(pass marker.Color) func(*marker.ThreeColor, error) algo.Limiter {
	return func(m *marker.ThreeColor, err error) algo.Limiter {
		if err != nil {
			panic(err)
		}
		return marker.Limit(m, pass)
	}
}

// A client that waits for Retry-After succeeds, whichever algorithm denied it;
// one that comes well before is denied again. And every answer on the way
// has well-formed fields.
func TestRetryAfterOfEveryAlgorithm(t *testing.T) {
	for _, text := range cases.Limits("2/2s", cases.Without{"zone": "its window is a day"}) {
		algorithms[text] = func() algo.Limiter { return algo.Must(algo.Must(algo.Parse(text)).New()) }
	}
	for name, limiter := range algorithms {
		for _, early := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", early"}[early], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(1234567 * time.Microsecond) // no window begins here
					h := httpmw.Limit(limiter(), key("k"), httpmw.WithName("p"))(ok)
					after := retryAfter(t, exhaust(t, h))
					if early {
						time.Sleep(max(min(after*5/6, after-time.Second)-time.Second, 0)) // less than the wait, which was spread
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

// A limit on trial denies no request and is not advertised.
func TestShadow(t *testing.T) {
	var last telemetry.Event
	h := httpmw.Limit(algo.Shadow(bucket(t, algo.PerHour(1))), key("k"),
		httpmw.WithObserver(func(e telemetry.Event) { last = e }))(ok)
	w := serve(h, get())
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Result().Header.Values(limitField), "nothing to act on, also while there is room")
	require.Empty(t, w.Result().Header.Values(policyField))
	require.Equal(t, algo.SourceTrial, last.Decision.Source)
	require.Equal(t, algo.Admitted, last.Decision.Reason)
	w = serve(h, get())
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Result().Header.Values(limitField))
	require.Empty(t, w.Result().Header.Values("Retry-After"))
	require.Equal(t, telemetry.Allowed, last.Result)
	require.Equal(t, algo.SourceTrial, last.Decision.Source)
	require.Equal(t, algo.Quota, last.Decision.Trial, "the reason of the denial that would have been")
	require.Equal(t, time.Hour, last.Decision.RetryAfter.Round(time.Minute))
}

// A limit on trial beside one that holds.
func TestShadowWithinLimits(t *testing.T) {
	trial := algo.Shadow(bucket(t, algo.PerHour(1)))
	h := httpmw.Limits([]httpmw.Policy{
		{Name: "trial", Limiter: trial, Key: key("k")},
		{Name: "holds", Limiter: bucket(t, algo.PerHour(2)), Key: key("k")},
	})(ok)
	require.Equal(t, 200, serve(h, get()).Code)
	header := serve(h, get()).Result().Header
	require.Equal(t, []string{`"holds";q=2;w=3600`}, header.Values(policyField))
	require.Equal(t, []string{`"holds";r=0;t=1800`}, header.Values(limitField))
	w := serve(h, get())
	require.Equal(t, 429, w.Code)
	require.Equal(t, []string{"holds"}, problemOf(t, w).Violated)
}

// All under one name: the fields describe the limit with the fewest remaining
// units, and if one limit denies, no other is charged.
func TestAll(t *testing.T) {
	second, hour := bucket(t, algo.PerSecond(1)), bucket(t, algo.PerHour(2))
	h := httpmw.Limit(algo.All(second, hour), key("k"), httpmw.WithName("all"))(ok)
	require.Equal(t, 200, serve(h, get()).Code)
	w := serve(h, get())
	require.Equal(t, 429, w.Code)
	require.Equal(t, []string{"all"}, problemOf(t, w).Violated)
	require.Contains(t, []string{"1", "2"}, w.Result().Header.Get("Retry-After"))
	require.Len(t, structured(t, w.Result().Header, limitField), 1)
	require.True(t, hour.Allow("k", 1), "the denial was not charged")
	require.False(t, hour.Allow("k", 1))
}

// A policy whose limiter is a composition is one policy, and the items of the
// others do not get mixed up with its parts.
func TestAllWithinLimits(t *testing.T) {
	h := httpmw.Limits([]httpmw.Policy{
		{Name: "a", Limiter: algo.All(bucket(t, algo.PerSecond(7)), bucket(t, algo.PerMinute(600))), Key: key("k")},
		{Name: "b", Limiter: bucket(t, algo.PerHour(2)), Key: key("k")},
		{Name: "c", Limiter: bucket(t, algo.PerDay(90)), Key: key("k")},
	})(ok)
	w := serve(h, get())
	require.Equal(t, `"a";q=7;w=1, "b";q=2;w=3600, "c";q=90;w=86400`, w.Result().Header.Get(policyField))
	require.Equal(t, `"a";r=6;t=1, "b";r=1;t=1800, "c";r=89;t=960`, w.Result().Header.Get(limitField))
	serve(h, get())
	require.Equal(t, []string{"b"}, problemOf(t, serve(h, get())).Violated)
}

// Where no limit is in force, none is advertised: r=0 would make well-behaved
// clients back off.
func TestNoLimitIsAdvertised(t *testing.T) {
	off := algo.NewSwitch(bucket(t, algo.PerHour(1)))
	off.Off()
	foreign := marker.Limit(green{}, marker.Green)
	for name, l := range map[string]algo.Limiter{
		"switched off": off, "unlimited": algo.Unlimited(), "a marker without a description": foreign,
		"a backend on trial that fails": algo.Shadow(&scripted{err: errors.New("down")}),
	} {
		for _, mode := range []httpmw.HeadersMode{httpmw.IETF, httpmw.Legacy} {
			h := httpmw.Limit(l, key("k"), httpmw.WithHeaders(mode))(answer(204))
			require.Empty(t, serve(h, get()).Result().Header, name)
		}
		h := httpmw.Limits([]httpmw.Policy{
			{Name: "a", Limiter: l, Key: key("k")}, {Name: "b", Limiter: l, Key: key("k")},
		})(answer(204))
		require.Empty(t, serve(h, get()).Result().Header, name)
	}
	off.On()
	require.NotEmpty(t, ask(off).Result().Header.Get(limitField))
}

type green struct{}

func (green) Mark(context.Context, string, int64, marker.Color) (marker.Color, error) {
	return marker.Green, nil
}

// A denial for ever has no time after which more is available.
func TestDeniedForEver(t *testing.T) {
	l := denying(algo.Never, algo.Forever)
	l.decision.NextAfter = algo.Forever
	w := ask(l, httpmw.WithName("p"))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, `"p";r=0`, w.Result().Header.Get(limitField))
}

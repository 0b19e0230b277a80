package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/stretchr/testify/require"
)

// A limit on trial denies nobody, and nobody is told to keep to it.
func TestShadow(t *testing.T) {
	var last httpmw.Event
	h := httpmw.Limit(algo.Shadow(bucket(t, algo.PerHour(1))), key("k"),
		httpmw.WithObserver(func(e httpmw.Event) { last = e }))(ok)
	require.Equal(t, 200, serve(h, get()).Code)
	require.Equal(t, algo.SourceLocal, last.Decision.Source)
	w := serve(h, get())
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Result().Header.Values(limitField))
	require.Empty(t, w.Result().Header.Values("Retry-After"))
	require.Equal(t, httpmw.Allowed, last.Result)
	require.Equal(t, algo.SourceShadowed, last.Decision.Source)
	require.Equal(t, algo.Quota, last.Decision.Reason, "what would have been")
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

// All under one name: the fields speak of the limit with the least left, and
// one that denies charges no other.
func TestAll(t *testing.T) {
	second, hour := bucket(t, algo.PerSecond(1)), bucket(t, algo.PerHour(2))
	h := httpmw.Limit(algo.All(second, hour), key("k"), httpmw.WithName("all"))(ok)
	require.Equal(t, 200, serve(h, get()).Code)
	w := serve(h, get())
	require.Equal(t, 429, w.Code)
	require.Equal(t, []string{"all"}, problemOf(t, w).Violated)
	require.Equal(t, "1", w.Result().Header.Get("Retry-After"))
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

// Where no limit is in force, none is told: r=0 would stop clients that listen.
func TestNothingIsToldOfNoLimit(t *testing.T) {
	off := algo.NewSwitch(bucket(t, algo.PerHour(1)))
	off.Off()
	foreign := algo.FromMarker(green{}, algo.Green)
	for name, l := range map[string]algo.Limiter{
		"switched off": off, "unlimited": algo.Unlimited(), "a marker that cannot tell": foreign,
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

func (green) Mark(context.Context, string, int64, algo.Color) (algo.Color, error) {
	return algo.Green, nil
}

// What is denied for ever has no time after which there is more.
func TestDeniedForEver(t *testing.T) {
	l := denying(algo.Never, algo.Forever)
	l.decision.NextAfter = algo.Forever
	w := ask(l, httpmw.WithName("p"))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, `"p";r=0`, w.Result().Header.Get(limitField))
}

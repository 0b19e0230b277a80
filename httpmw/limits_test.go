package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

func TestW4_Limits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := httpmw.Limits([]httpmw.Policy{
			{Name: "burst", Limiter: bucket(t, algo.PerSecond(2)), Key: key("k")},
			{Name: "daily", Limiter: bucket(t, algo.PerDay(3)), Key: key("k")},
		})(ok)
		fields := func(want int) (policy, limit string) {
			w := serve(h, get())
			require.Equal(t, want, w.Code)
			require.Len(t, structured(t, w.Result().Header, policyField), 2)
			require.Len(t, structured(t, w.Result().Header, limitField), 2)
			return w.Result().Header.Get(policyField), w.Result().Header.Get(limitField)
		}
		policy, limit := fields(200)
		require.Equal(t, `"burst";q=2;w=1, "daily";q=3;w=86400`, policy)
		require.Equal(t, `"burst";r=1;t=1, "daily";r=2;t=28800`, limit)
		fields(200)
		_, limit = fields(429)
		require.Equal(t, `"burst";r=0;t=1, "daily";r=1;t=28800`, limit, "the daily quota was not charged")
		w := serve(h, get())
		require.Equal(t, []string{"burst"}, problemOf(t, w).Violated)
		require.Contains(t, []string{"1", "2"}, w.Result().Header.Get("Retry-After"))
		time.Sleep(time.Second)
		fields(200)
		w = serve(h, get())
		require.Equal(t, []string{"daily"}, problemOf(t, w).Violated)
		s, err := strconv.Atoi(w.Result().Header.Get("Retry-After"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, s, 28799)
		time.Sleep(time.Duration(s) * time.Second)
		fields(200)
	})
}

func TestLimitsStatus(t *testing.T) {
	full := newSlots(1)
	full.Acquire(t.Context(), "", 1)
	global := httpmw.Policy{Name: "server", Limiter: full, Key: keyfunc.Global()}
	none := httpmw.Policy{Name: "user", Limiter: denying(algo.Quota, time.Second), Key: key("k")}
	free := httpmw.Policy{Name: "free", Limiter: bucket(t, algo.PerHour(100)), Key: key("k")}
	never := httpmw.Policy{Name: "never", Limiter: denying(algo.Never, algo.Forever), Key: key("k")}
	for _, row := range []struct {
		ps       []httpmw.Policy
		status   int
		violated []string
	}{
		{[]httpmw.Policy{free, none}, 429, []string{"user"}},
		{[]httpmw.Policy{free, global}, 503, []string{"server"}},
		{[]httpmw.Policy{global, free}, 503, []string{"server"}},
		{[]httpmw.Policy{none, global}, 503, []string{"user", "server"}},
		{[]httpmw.Policy{never, global}, 429, []string{"never", "server"}},
		{[]httpmw.Policy{global}, 503, []string{"server"}},
	} {
		var reported []string
		h := httpmw.Limits(row.ps, httpmw.WithObserver(func(e telemetry.Event) { reported = append(reported, e.Policy) }))(unreachable(t))
		w := serve(h, get())
		require.Equal(t, row.status, w.Code)
		require.Equal(t, row.violated, problemOf(t, w).Violated)
		require.Equal(t, row.violated, reported)
		if row.ps[0].Name == "never" {
			require.Empty(t, w.Result().Header.Values("Retry-After"))
		}
	}
	require.Equal(t, 200, ask(free.Limiter).Code)
	lease, err := free.Limiter.Acquire(t.Context(), "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 99, lease.Remaining, "denials charged nothing")
}

// Each policy has its own key, cost and way of missing a key.
func TestLimitsLeaveOut(t *testing.T) {
	noKey, broken := failingKey(keyfunc.ErrNoKey), failingKey(errors.New("broken"))
	cost := func(*http.Request) int64 { return 5 }
	for _, row := range []struct {
		name   string
		second httpmw.Policy
		opts   []httpmw.Option
		status int
		costs  []int64
	}{
		{"both", httpmw.Policy{Key: key("b")}, nil, 200, []int64{1}},
		{"own cost", httpmw.Policy{Key: key("b"), Cost: cost}, nil, 200, []int64{5}},
		{"no key, skipped", httpmw.Policy{Key: noKey}, []httpmw.Option{httpmw.WithMissingKey(httpmw.Skip)}, 200, nil},
		{"no key, denied", httpmw.Policy{Key: noKey}, []httpmw.Option{httpmw.WithMissingKey(http.StatusUnauthorized)}, 401, nil},
		{"broken, open", httpmw.Policy{Key: broken}, []httpmw.Option{httpmw.WithFailOpen()}, 200, nil},
		{"broken, closed", httpmw.Policy{Key: broken}, nil, 503, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			first, second := bucket(t, algo.PerHour(1)), admitting()
			row.second.Limiter, row.second.Name = second, "second"
			h := httpmw.Limits([]httpmw.Policy{{Name: "first", Limiter: first, Key: key("a")}, row.second}, row.opts...)(ok)
			require.Equal(t, row.status, serve(h, get()).Code)
			require.Equal(t, row.costs, second.costs)
			again := serve(h, get()).Code
			if row.status == 200 {
				require.Equal(t, 429, again, "the first one still holds")
			}
		})
	}
}

func TestLimitsThatFail(t *testing.T) {
	down := &scripted{err: errors.New("secret")}
	first := bucket(t, algo.PerHour(1))
	ps := []httpmw.Policy{{Name: "a", Limiter: first, Key: key("k")}, {Name: "b", Limiter: down, Key: key("k")}}
	w := serve(httpmw.Limits(ps)(unreachable(t)), get())
	require.Equal(t, 503, w.Code)
	require.NotContains(t, w.Body.String(), "secret")
	var results []telemetry.Result
	h := httpmw.Limits(ps, httpmw.WithFailOpen(), httpmw.WithObserver(func(e telemetry.Event) { results = append(results, e.Result) }))(ok)
	require.Equal(t, 200, serve(h, get()).Code)
	require.Equal(t, []telemetry.Result{telemetry.FailedOpen, telemetry.FailedOpen}, results)
	require.True(t, first.Allow("k", 1), "nothing stays charged")
}

func TestLimitsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paced := bucket(t, algo.Every(10*time.Second), algo.MaxWait(time.Minute))
		daily := bucket(t, algo.PerDay(100))
		h := httpmw.Limits([]httpmw.Policy{
			{Name: "paced", Limiter: paced, Key: key("k")}, {Name: "daily", Limiter: daily, Key: key("k")},
		})(ok)
		require.Equal(t, 200, serve(h, get()).Code)
		start := time.Now()
		require.Equal(t, `"paced";r=0;t=10, "daily";r=98;t=854`, serve(h, get()).Result().Header.Get(limitField))
		require.Equal(t, 10*time.Second, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := serve(h, get().WithContext(ctx))
		require.Equal(t, []string{"paced"}, problemOf(t, w).Violated)
		require.Contains(t, w.Result().Header.Get(limitField), `"daily";r=98`)
	})
}

// An in-flight limit within a Limits frees its slot with the connection.
func TestLimitsHold(t *testing.T) {
	l := newSlots(1)
	h := httpmw.Limits([]httpmw.Policy{
		{Name: "rate", Limiter: bucket(t, algo.PerHour(10)), Key: key("k")}, {Name: "slots", Limiter: l, Key: key("k")},
	})(answer(500))
	w := serve(h, get())
	require.Equal(t, `"rate";q=10;w=3600, "slots";q=1;qu="concurrent-requests"`, w.Result().Header.Get(policyField))
	require.Equal(t, `"rate";r=9;t=360, "slots";r=0`, w.Result().Header.Get(limitField))
	require.Equal(t, 1, l.released(algo.Failed))
	// A composition describes only one of its limits; it may still hold a slot.
	serve(httpmw.Limit(algo.All(bucket(t, algo.PerHour(1)), l), key("k"))(answer(500)), get())
	require.Equal(t, 2, l.released(algo.Failed))
}

func TestLimitsWiring(t *testing.T) {
	a := httpmw.Policy{Limiter: bucket(t, algo.PerHour(10)), Key: key("k")}
	for _, row := range []struct {
		message string
		ps      []httpmw.Policy
		opts    []httpmw.Option
	}{
		{"httpmw: Limits: there are no policies", nil, nil},
		{"httpmw: Limits: the limiter of policy 1 is nil", []httpmw.Policy{a, {Key: key("k")}}, nil},
		{"httpmw: Limits: the key function of policy 1 is nil", []httpmw.Policy{a, {Limiter: admitting()}}, nil},
		{"httpmw: Limits: two policies have the name 10-per-hour: give each a Name", []httpmw.Policy{a, a}, nil},
		{"httpmw: Limits: does not take the option WithName, only WithCost, WithSkip, WithHeaders, WithCause, WithDenied, WithRefundIf, WithFailOpen, WithMissingKey, WithObserver, WithLeaseInContext",
			[]httpmw.Policy{a}, []httpmw.Option{httpmw.WithName("x")}},
	} {
		require.PanicsWithValue(t, row.message, func() { httpmw.Limits(row.ps, row.opts...) })
	}
}

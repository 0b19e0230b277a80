package httpmw_test

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFields(t *testing.T) {
	second := algo.Description{Quota: 10, Window: time.Second}
	for _, row := range []struct {
		name          string
		d             algo.Decision
		says          algo.Description
		policy, limit string
	}{
		{"spent a little", algo.Decision{Remaining: 7, NextAfter: time.Second}, second,
			`"p";q=10;w=1`, `"p";r=7;t=1`},
		{"t rounds up", algo.Decision{Remaining: 7, NextAfter: time.Second + 1}, second,
			`"p";q=10;w=1`, `"p";r=7;t=2`},
		{"t of a nanosecond", algo.Decision{Remaining: 7, NextAfter: 1}, second,
			`"p";q=10;w=1`, `"p";r=7;t=1`},
		{"nothing spent", algo.Decision{Remaining: 10}, second, `"p";q=10;w=1`, `"p";r=10`},
		{"everything spent", algo.Decision{NextAfter: time.Minute}, second, `"p";q=10;w=1`, `"p";r=0;t=60`},
		{"limiter does not know", algo.Decision{Remaining: 3}, second, `"p";q=10;w=1`, `"p";r=3`},
		{"w in whole seconds", algo.Decision{Remaining: 10}, algo.Description{Quota: 10, Window: 1001 * time.Millisecond},
			`"p";q=10;w=1`, `"p";r=10`},
		{"a part of a second", algo.Decision{Remaining: 5}, algo.Description{Quota: 5, Window: 100 * time.Millisecond},
			`"p";q=50;w=1`, `"p";r=5`},
		{"no whole rate", algo.Decision{Remaining: 1}, algo.Description{Quota: 1, Window: 600 * time.Millisecond},
			`"p";q=1`, `"p";r=1`},
		{"no window", algo.Decision{Remaining: 10}, algo.Description{Quota: 10}, `"p";q=10`, `"p";r=10`},
		{"in flight", algo.Decision{Remaining: 3, NextAfter: time.Second},
			algo.Description{Quota: 64, Unit: algo.ConcurrentRequests},
			`"p";q=64;qu="concurrent-requests"`, `"p";r=3`},
		{"15 digits", algo.Decision{Remaining: math.MaxInt64 - 1, NextAfter: math.MaxInt64 - 1},
			algo.Description{Quota: math.MaxInt64, Window: math.MaxInt64},
			`"p";q=999999999999999;w=9223372037`, `"p";r=999999999999999;t=9223372037`},
		{"never negative", algo.Decision{Remaining: -3, NextAfter: -5}, algo.Description{Quota: -1, Window: -1},
			`"p";q=0`, `"p";r=0`},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.d.Allowed, row.d.Limit = true, max(row.says.Quota, 1)
			w := ask(&scripted{decision: row.d, description: row.says}, httpmw.WithName("p"))
			require.Equal(t, []string{row.policy}, w.Result().Header.Values(policyField))
			require.Equal(t, []string{row.limit}, w.Result().Header.Values(limitField))
		})
	}
}

// structured requires that the field is a list of strings with integer
// parameters, and that marshalling it gives the same bytes.
func structured(t require.TestingT, h http.Header, field string) httpsfv.List {
	list, err := httpsfv.UnmarshalList(h.Values(field))
	require.NoError(t, err, "%s: %q", field, h.Values(field))
	text, err := httpsfv.Marshal(list)
	require.NoError(t, err)
	require.Equal(t, strings.Join(h.Values(field), ", "), text)
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		require.True(t, ok)
		require.IsType(t, "", item.Value, "names are strings")
		for _, p := range item.Params.Names() {
			v, _ := item.Params.Get(p)
			if p == "qu" {
				require.Equal(t, "concurrent-requests", v)
				continue
			}
			require.Contains(t, []string{"q", "w", "r", "t"}, p)
			require.IsType(t, int64(0), v)
			require.GreaterOrEqual(t, v, int64(0))
		}
	}
	return list
}

func TestFieldsAreStructured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 100))
		l := &scripted{
			decision: algo.Decision{
				Allowed: rapid.Bool().Draw(t, "allowed"), Limit: number.Draw(t, "limit"),
				Remaining: number.Draw(t, "remaining"), NextAfter: time.Duration(number.Draw(t, "next")),
			},
			description: algo.Description{
				Quota: number.Draw(t, "quota"), Window: time.Duration(number.Draw(t, "window")),
				Unit: algo.Unit(rapid.IntRange(0, 1).Draw(t, "unit")),
			},
			mute: rapid.Bool().Draw(t, "mute"),
		}
		name := rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`).Draw(t, "name")
		h := ask(l, httpmw.WithName(name)).Result().Header
		policies := structured(t, h, policyField)
		limits := structured(t, h, limitField)
		if l.decision.Allowed && l.decision.Limit <= 0 {
			require.Empty(t, policies, "nothing is known of the limit")
			require.Empty(t, limits)
			return
		}
		require.Len(t, policies, 1)
		require.Len(t, limits, 1)
		require.Equal(t, name, policies[0].(httpsfv.Item).Value)
		require.Equal(t, name, limits[0].(httpsfv.Item).Value)
	})
}

func TestDefaultNames(t *testing.T) {
	for _, row := range []struct {
		l    algo.Limiter
		want string
	}{
		{bucket(t, algo.PerMinute(100)), `"100-per-minute";q=100;w=60`},
		{bucket(t, algo.PerSecond(10), algo.Burst(20)), `"10-per-second-burst-20";q=20;w=2`},
		{newSlots(64), `"64-concurrent-requests";q=64;qu="concurrent-requests"`},
		{&scripted{decision: algo.Decision{Allowed: true, Limit: 5}, mute: true}, `"default";q=5`},
	} {
		require.Equal(t, row.want, ask(row.l).Result().Header.Get(policyField))
	}
}

// An adaptive limiter has no limit until it sees a reason for one, and may deny
// for the queue in front of the processor meanwhile. 2147483647 is nothing that
// clients can use: not as a quota, not as the remaining units, not as a name.
func TestUnboundedInFlightIsNotAdvertised(t *testing.T) {
	const most = math.MaxInt32
	inFlight := algo.Description{Quota: most, Unit: algo.ConcurrentRequests, NeedsRelease: true}
	d := algo.Decision{Allowed: true, Limit: most, Remaining: most - 1}
	for _, mode := range []httpmw.HeadersMode{httpmw.IETF, httpmw.Legacy} {
		for _, l := range []*scripted{{decision: d, description: inFlight}, {decision: d, mute: true}} {
			h := httpmw.Limit(l, keyfunc.Global(), httpmw.WithHeaders(mode))(answer(204))
			require.Empty(t, serve(h, get()).Result().Header)
		}
	}
	l := &scripted{decision: d, description: inFlight}
	several := httpmw.Limits([]httpmw.Policy{
		{Limiter: l, Key: keyfunc.Global()}, {Name: "rate", Limiter: bucket(t, algo.PerHour(2)), Key: key("k")},
	})(ok)
	require.Equal(t, []string{`"rate";r=1;t=1800`}, serve(several, get()).Result().Header.Values(limitField))

	l.decision = algo.Decision{Reason: algo.Overload, Limit: most, Remaining: most - 7, RetryAfter: time.Second}
	w := serve(httpmw.Limit(l, keyfunc.Global())(ok), get())
	require.Equal(t, 503, w.Code)
	require.Equal(t, []string{"default"}, problemOf(t, w).Violated)
	require.NotEmpty(t, w.Result().Header.Get("Retry-After"))
	require.Empty(t, w.Result().Header.Values(policyField))
	require.Empty(t, w.Result().Header.Values(limitField))

	found := httpmw.Limit(l, keyfunc.Global())(ok)
	l.description.Quota, l.decision = 7, algo.Decision{Allowed: true, Limit: 7, Remaining: 6}
	require.Equal(t, []string{`"default";r=6`}, serve(found, get()).Result().Header.Values(limitField), "a limit that there is")

	units := &scripted{decision: d, description: algo.Description{Quota: most, Window: time.Hour}}
	require.NotEmpty(t, ask(units).Result().Header.Values(limitField), "a quota of as many")
}

func TestPolicyFollowsTheLimit(t *testing.T) {
	l := bucket(t, algo.PerSecond(10))
	h := httpmw.Limit(l, key("k"), httpmw.WithName("p"))(ok)
	policy := func() string { return serve(h, get()).Result().Header.Get(policyField) }
	require.Equal(t, `"p";q=10;w=1`, policy())
	require.NoError(t, l.SetRate(algo.PerMinute(30)))
	require.Equal(t, `"p";q=30;w=60`, policy())
	require.NoError(t, l.SetBurst(60))
	require.Equal(t, `"p";q=60;w=120`, policy())
}

func TestSecondLimiterAppends(t *testing.T) {
	inner := httpmw.Limit(bucket(t, algo.PerMinute(5)), key("a"), httpmw.WithName("inner"))(ok)
	both := httpmw.Limit(bucket(t, algo.PerHour(9)), key("b"), httpmw.WithName("outer"))(inner)
	header := serve(both, get()).Result().Header
	require.Equal(t, []string{`"outer";q=9;w=3600`, `"inner";q=5;w=60`}, header.Values(policyField))
	require.Equal(t, []string{`"outer";r=8;t=400`, `"inner";r=4;t=12`}, header.Values(limitField))
	require.Len(t, structured(t, header, limitField), 2)
}

func TestFieldsShareNoMemory(t *testing.T) {
	h := httpmw.Limit(bucket(t, algo.PerMinute(5)), key("a"), httpmw.WithName("p"))(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Ratelimit-Policy"][0] = "mine"
			w.Header().Add("RateLimit-Policy", "more")
		}))
	serve(h, get())
	require.Equal(t, `"p";q=5;w=60`, serve(httpmw.Limit(bucket(t, algo.PerMinute(5)), key("a"),
		httpmw.WithName("p"))(ok), get()).Result().Header.Get(policyField))
	w := serve(h, get()).Result().Header
	require.Equal(t, []string{"mine", "more"}, w.Values(policyField))
	require.Equal(t, []string{`"p";r=3;t=12`}, w.Values(limitField))
}

func TestNoHeaders(t *testing.T) {
	h := ask(denying(algo.Quota, time.Second), httpmw.WithHeaders(httpmw.None)).Result().Header
	require.Empty(t, h.Values(policyField))
	require.Empty(t, h.Values(limitField))
	require.Contains(t, []string{"1", "2"}, h.Get("Retry-After"))
	require.Empty(t, ask(admitting(), httpmw.WithHeaders(httpmw.None)).Result().Header.Values(limitField))
}

func TestLegacyHeaders(t *testing.T) {
	tight := &scripted{decision: algo.Decision{Allowed: true, Limit: 10, Remaining: 2, ResetAfter: 1500 * time.Millisecond}}
	wide := &scripted{decision: algo.Decision{Allowed: true, Limit: 100, Remaining: 50, ResetAfter: time.Hour}}
	legacy := httpmw.WithHeaders(httpmw.Legacy)
	fields := func(h http.Handler) [3]string {
		header := serve(h, get()).Result().Header
		require.Empty(t, header.Values(limitField))
		require.LessOrEqual(t, len(header.Values("X-RateLimit-Limit")), 1)
		return [3]string{header.Get("X-RateLimit-Limit"), header.Get("X-RateLimit-Remaining"), header.Get("X-RateLimit-Reset")}
	}
	want := [3]string{"10", "2", "2"}
	k := keyfunc.Global()
	require.Equal(t, want, fields(httpmw.Limit(tight, k, legacy)(ok)))
	require.Equal(t, want, fields(httpmw.Limit(tight, k, legacy)(httpmw.Limit(wide, k, legacy)(ok))), "the tightest wins")
	require.Equal(t, want, fields(httpmw.Limit(wide, k, legacy)(httpmw.Limit(tight, k, legacy)(ok))), "in any order")
}

func TestLegacyEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1500 * time.Millisecond)
		l := &scripted{decision: algo.Decision{Allowed: true, Limit: 10, Remaining: 2, ResetAfter: time.Minute}}
		reset := func() string {
			return ask(l, httpmw.WithHeaders(httpmw.LegacyEpoch)).Result().Header.Get("X-RateLimit-Reset")
		}
		begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		require.Equal(t, strconv.FormatInt(begin+62, 10), reset(), "rounded up")
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, strconv.FormatInt(begin+62, 10), reset())
	})
}

// The fields arrive over every protocol, of admissions and of denials.
func TestFieldsOnTheWire(t *testing.T) {
	for _, protocol := range protocols {
		inner := httpmw.Limit(bucket(t, algo.PerHour(2)), keyfunc.ClientIP(), httpmw.WithName("in.ner"))(ok)
		url, client := start(t, protocol, httpmw.Limit(newSlots(3), keyfunc.Global())(inner))
		for _, status := range []int{200, 200, 429} {
			resp, err := client.Get(url)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, status, resp.StatusCode)
			policies, limits := structured(t, resp.Header, policyField), structured(t, resp.Header, limitField)
			require.Len(t, policies, 2)
			require.Len(t, limits, 2)
			require.Equal(t, "in.ner", limits[1].(httpsfv.Item).Value)
		}
	}
}

// Both styles at once, for clients that know one of them.
func TestBothHeaderStyles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := httpmw.WithHeaders(httpmw.IETF, httpmw.Legacy)
		limits := []httpmw.Policy{
			{Name: "burst", Limiter: bucket(t, algo.PerMinute(9)), Key: key("k")},
			{Name: "daily", Limiter: bucket(t, algo.PerDay(5)), Key: key("k")},
		}
		for name, h := range map[string]http.Handler{
			"one":     httpmw.Limit(bucket(t, algo.PerDay(5)), key("k"), httpmw.WithName("daily"), both)(ok),
			"several": httpmw.Limits(limits, both)(ok),
		} {
			got := serve(h, get()).Result().Header
			require.Contains(t, got.Get(policyField), `"daily";q=5;w=86400`, name)
			require.Contains(t, got.Get(limitField), `"daily";r=4;t=17280`, name)
			require.Equal(t, "5 4 17280", got.Get("X-RateLimit-Limit")+" "+got.Get("X-RateLimit-Remaining")+" "+got.Get("X-RateLimit-Reset"), name)
		}
	})
	for _, modes := range [][]httpmw.HeadersMode{
		{}, {httpmw.IETF, httpmw.IETF}, {httpmw.IETF, httpmw.None}, {httpmw.None, httpmw.Legacy}, {httpmw.Legacy, httpmw.LegacyEpoch}, {9},
	} {
		require.Panics(t, func() { httpmw.Limit(admitting(), key("k"), httpmw.WithHeaders(modes...)) }, "%v", modes)
	}
}

// A key with a larger limit than the described one does not have more left than the
// quota.
func TestRemainingIsAtMostTheQuota(t *testing.T) {
	l := admitting()
	l.decision.Limit, l.decision.Remaining = 1000, 900
	require.Equal(t, `"p";r=10`, ask(l, httpmw.WithName("p")).Result().Header.Get(limitField))
	l.decision.Limit, l.decision.Remaining = 5, 9
	require.Equal(t, "5", ask(l, httpmw.WithHeaders(httpmw.Legacy)).Result().Header.Get("X-RateLimit-Remaining"))
}

package algo_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func keySet(t require.TestingT, exact, prefixes []string) *algo.KeySet {
	s, err := algo.NewKeySet(exact, prefixes)
	require.NoError(t, err)
	return s
}

// Every wrapper forwards what is decided, given back and described, and works
// inside a composition as it does alone.
func TestWrappersForward(t *testing.T) {
	in(t, map[string]func(l algo.Limiter) algo.Limiter{
		"Shadow":    algo.Shadow,
		"Switch":    func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"AllowList": func(l algo.Limiter) algo.Limiter { return algo.AllowList(l, new(algo.KeySet)) },
		"DenyList":  func(l algo.Limiter) algo.Limiter { return algo.DenyList(l, new(algo.KeySet)) },
		"All":       func(l algo.Limiter) algo.Limiter { return algo.All(l, algo.Unlimited()) },
		"Ban": func(l algo.Limiter) algo.Limiter {
			return algo.Must(algo.NewBan(l, algo.PerMinute(100), time.Minute, time.Hour))
		},
		"nested": func(l algo.Limiter) algo.Limiter {
			return algo.Shadow(algo.NewSwitch(algo.All(algo.Shadow(algo.NewSwitch(l)), algo.Unlimited())))
		},
	}, func(t *testing.T, wrap func(l algo.Limiter) algo.Limiter) {
		for _, foreignInner := range []bool{false, true} {
			inner := bucket(algo.PerHour(10))
			l := wrap(inner)
			if foreignInner {
				l = wrap(&foreign{Limiter: inner})
			}
			if d, ok := algo.Describe(l); !foreignInner {
				require.True(t, ok)
				require.Equal(t, algo.Description{Quota: 10, Window: time.Hour}, d)
			}
			one := func(n int64) algo.Lease { return must(t, l, "k", n) }
			two := func(n int64) algo.Lease {
				return acquireAll(t, algo.Request{Limiter: l, Key: "k", N: n}, algo.Request{Limiter: bucket(algo.PerHour(99)), N: n})
			}
			for _, take := range []func(n int64) algo.Lease{one, two} {
				lease := take(6)
				require.True(t, lease.Allowed)
				require.Equal(t, int64(4), peek(t, inner, "k").Remaining)
				lease.Settle(8)
				require.Equal(t, int64(2), peek(t, inner, "k").Remaining)
				lease.Release(algo.Canceled)
				require.Equal(t, int64(10), peek(t, inner, "k").Remaining)
			}
			_, err := l.Acquire(bg, "k", -1)
			require.ErrorIs(t, err, algo.ErrCost)

			// Asked behind a denial: the same answer, and no charge.
			lease := acquireAll(t, algo.Request{Limiter: algo.DenyList(inner, keySet(t, []string{"k"}, nil)), Key: "k", N: 1},
				algo.Request{Limiter: l, Key: "k", N: 6})
			require.False(t, lease.Allowed)
			require.True(t, lease.Parts()[1].Allowed)
			require.Equal(t, int64(10), peek(t, inner, "k").Remaining)
		}
	})
}

func TestWrappersPanicWhenWiredWrongly(t *testing.T) {
	l := bucket(algo.PerHour(1))
	for says, wire := range map[string]func(){
		"algo: Shadow: the limiter is nil":    func() { algo.Shadow(nil) },
		"algo: NewSwitch: the limiter is nil": func() { algo.NewSwitch(nil) },
		"algo: ByKey: the function is nil":    func() { algo.ByKey(nil) },
		"algo: AllowList: the limiter is nil": func() { algo.AllowList(nil, new(algo.KeySet)) },
		"algo: AllowList: the key set is nil": func() { algo.AllowList(l, nil) },
		"algo: DenyList: the key set is nil":  func() { algo.DenyList(l, nil) },
	} {
		require.PanicsWithValue(t, says, wire)
	}
}

func TestShadowShowsWhatWouldBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerMinute(1), algo.MaxWait(30*time.Second))
		l := algo.Shadow(inner)
		first := must(t, l, "k", 1)
		require.Equal(t, algo.SourceLocal, first.Source, "an admission stands as it is")
		require.Zero(t, first.RetryAfter)

		denied := must(t, l, "k", 1)
		require.True(t, denied.Allowed)
		require.Equal(t, algo.SourceShadowed, denied.Source)
		require.Equal(t, algo.Quota, denied.Reason)
		require.Equal(t, 30*time.Second, denied.RetryAfter)
		denied.Release(algo.Canceled)
		require.Zero(t, peek(t, inner, "k").Remaining, "nothing was charged, nothing given back")

		time.Sleep(30 * time.Second)
		delayed := must(t, l, "k", 1)
		require.True(t, delayed.Allowed)
		require.Zero(t, delayed.Delay)
		require.Equal(t, algo.SourceShadowed, delayed.Source)
		require.Equal(t, algo.Admitted, delayed.Reason)
		require.Equal(t, 30*time.Second, delayed.RetryAfter)
	})
}

func TestShadowOfABrokenLimiterAdmits(t *testing.T) {
	lease := must(t, algo.Shadow(broken), "k", 1)
	require.Equal(t, algo.Decision{Allowed: true, Source: algo.SourceShadowed}, lease.Decision)
	lease = acquireAll(t, algo.Request{Limiter: algo.Shadow(broken), N: 1}, algo.Request{Limiter: bucket(algo.PerHour(2)), N: 1})
	require.True(t, lease.Allowed)
	require.Equal(t, int64(1), lease.Remaining)
}

func TestSwitch(t *testing.T) {
	inner := bucket(algo.PerHour(1))
	s := algo.NewSwitch(inner)
	require.True(t, s.IsOn())
	held := must(t, s, "k", 1)
	require.False(t, must(t, s, "k", 1).Allowed)

	s.Off()
	require.False(t, s.IsOn())
	for range 10 {
		lease := must(t, s, "k", 7)
		require.Equal(t, algo.Decision{Allowed: true, Source: algo.SourceOff}, lease.Decision)
		lease.Release(algo.Canceled)
	}
	_, err := s.Acquire(bg, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	held.Release(algo.Canceled)

	s.On()
	require.True(t, must(t, s, "k", 1).Allowed, "given back while it was off")
	require.False(t, must(t, s, "k", 1).Allowed)
}

func TestByKeyThatChoosesNothing(t *testing.T) {
	l := algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if key == "known" {
			return bucket(algo.PerHour(1))
		}
		return nil
	})
	require.True(t, must(t, l, "known", 1).Allowed)
	_, err := l.Acquire(bg, "unknown", 1)
	require.ErrorIs(t, err, algo.ErrRequest)
	other := bucket(algo.PerHour(1))
	for _, l := range []algo.Limiter{l, algo.All(algo.Unlimited(), l), algo.Shadow(algo.Shadow(l))} {
		lease, err := algo.AcquireAll(bg, algo.Request{Limiter: other, N: 1}, algo.Request{Limiter: l, Key: "unknown", N: 1})
		if err == nil {
			require.Equal(t, algo.SourceShadowed, lease.Source)
			lease.Release(algo.Canceled)
			continue
		}
		require.ErrorIs(t, err, algo.ErrRequest)
		require.ErrorContains(t, err, "request 2 of 2")
	}
	require.True(t, other.Allow("", 1))
	_, ok := algo.Describe(l)
	require.False(t, ok)
	_, err = algo.ByKey(new(algo.Overrides).Choose).Acquire(bg, "k", 1)
	require.ErrorIs(t, err, algo.ErrRequest, "the zero Overrides")
}

func TestOverrides(t *testing.T) {
	named := map[string]algo.Limiter{}
	for _, n := range []string{"exact", "long", "short", "gold", "rest"} {
		named[n] = bucket(algo.PerHour(1))
	}
	type tier struct{}
	o, err := algo.NewOverrides(algo.Choices{
		Exact:   map[string]algo.Limiter{"eu-west-1": named["exact"], "": named["exact"]},
		Prefix:  map[string]algo.Limiter{"eu-": named["short"], "eu-west-": named["long"]},
		Tiers:   map[string]algo.Limiter{"gold": named["gold"]},
		TierOf:  func(ctx context.Context, _ string) string { s, _ := ctx.Value(tier{}).(string); return s },
		Default: named["rest"],
	})
	require.NoError(t, err)
	gold := context.WithValue(bg, tier{}, "gold")
	for _, c := range []struct {
		ctx       context.Context
		key, want string
	}{
		{bg, "eu-west-1", "exact"}, {gold, "eu-west-1", "exact"}, {bg, "", "exact"},
		{bg, "eu-west-12", "long"}, {bg, "eu-west-", "long"}, {bg, "eu-west", "short"}, {gold, "eu-", "short"},
		{gold, "eu", "gold"}, {bg, "eu", "rest"}, {context.WithValue(bg, tier{}, "silver"), "eu", "rest"},
	} {
		require.Same(t, named[c.want], o.Choose(c.ctx, c.key), "key %q", c.key)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Choose(bg, "eu-west-12") }))

	for says, c := range map[string]algo.Choices{
		"Default is nil":               {},
		`Exact["k"] is nil`:            {Default: named["rest"], Exact: map[string]algo.Limiter{"k": nil}},
		`Prefix["k"] is nil`:           {Default: named["rest"], Prefix: map[string]algo.Limiter{"k": nil}},
		"empty prefix":                 {Default: named["rest"], Prefix: map[string]algo.Limiter{"": named["gold"]}},
		"Tiers and TierOf go together": {Default: named["rest"], Tiers: map[string]algo.Limiter{"gold": named["gold"]}},
	} {
		require.ErrorContains(t, o.Set(c), says)
		_, err := algo.NewOverrides(c)
		require.ErrorContains(t, err, says)
	}
	require.Same(t, named["exact"], o.Choose(bg, "eu-west-1"), "as it was")
}

// Swapped while it is read: every reader sees one choice or the other.
func TestOverridesAreSwappedAtomically(t *testing.T) {
	a, b := bucket(algo.PerHour(1)), bucket(algo.PerHour(1))
	of := func(l algo.Limiter) algo.Choices {
		exact := map[string]algo.Limiter{}
		for i := range 50 {
			exact[strconv.Itoa(i)] = l
		}
		return algo.Choices{Exact: exact, Default: l}
	}
	o, err := algo.NewOverrides(of(a))
	require.NoError(t, err)
	group(4, func(i int) {
		for j := range 500 {
			if i == 0 {
				_ = o.Set(of([]algo.Limiter{a, b}[j%2]))
				continue
			}
			if l := o.Choose(bg, strconv.Itoa(j%60)); l != algo.Limiter(a) && l != algo.Limiter(b) {
				panic("a third choice")
			}
		}
	})
}

func TestLists(t *testing.T) {
	keys := keySet(t, []string{"root"}, []string{"internal-", "in"})
	inner := bucket(algo.PerHour(1))
	free, barred := algo.AllowList(inner, keys), algo.DenyList(inner, keys)
	for _, key := range []string{"root", "internal-7", "internal-", "in", "inside"} {
		require.True(t, keys.Contains(key))
		for range 3 {
			require.Equal(t, algo.SourceOff, must(t, free, key, 5).Source)
		}
		for n := range int64(2) {
			d := must(t, barred, key, n).Decision
			require.False(t, d.Allowed, "n = %d", n)
			require.Equal(t, algo.Never, d.Reason)
			require.Equal(t, algo.Forever, d.RetryAfter)
		}
		_, err := barred.Acquire(bg, key, -1)
		require.ErrorIs(t, err, algo.ErrCost)
	}
	for i, key := range []string{"roo", "roots", "i", "", "Root"} {
		require.False(t, keys.Contains(key))
		require.True(t, must(t, []algo.Limiter{free, barred}[i%2], key, 1).Allowed)
		require.Equal(t, algo.Quota, must(t, []algo.Limiter{free, barred}[i%2], key, 1).Reason)
	}

	require.NoError(t, keys.Set([]string{"other"}, nil))
	require.False(t, keys.Contains("root"))
	require.True(t, keys.Contains("other"))
	require.ErrorContains(t, keys.Set([]string{"a", ""}, nil), "key 2 of 2 is empty")
	require.ErrorContains(t, keys.Set(nil, []string{""}), "prefix 1 of 1 is empty")
	_, err := algo.NewKeySet([]string{""}, nil)
	require.Error(t, err)
	require.True(t, keys.Contains("other"), "as it was")
	require.Zero(t, testing.AllocsPerRun(100, func() { keys.Contains("internal-7") }))
}

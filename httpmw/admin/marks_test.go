package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/keyfunc"
)

// Whether the configuration changed or an operator acted is on the time axis.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, keyfunc.Header("X-User"))
		require.Empty(t, state(t, s.page)["marks"])
		time.Sleep(10 * time.Second)
		require.NoError(t, s.page.Update(admin.WithPolicy("p", s.limiter)))
		require.Error(t, s.page.Update(admin.WithPolicy("p", nil)))
		s.page.Mark("deployed " + strings.Repeat("x", 1000))
		ask(t, s.page, "switch", `{"policy":"p","on":false}`)
		ask(t, s.page, "why", `{"policy":"p","key":"k"}`)
		serve(s.page, order("block", `{"policy":"p","key":"unseen","seconds":5}`))
		marks := state(t, s.page)["marks"].([]any)
		require.Len(t, marks, 3)
		require.Equal(t, map[string]any{"second": 11.0, "text": "limits loaded"}, marks[0])
		require.Less(t, len(at(t, marks, 1, "text").(string)), 300)
		require.Equal(t, "switch p", at(t, marks, 2, "text"))
		for range 100 {
			s.page.Mark("many")
		}
		require.Len(t, state(t, s.page)["marks"], 32)
		time.Sleep(6 * time.Minute)
		require.Empty(t, state(t, s.page)["marks"])
	})
}

// A table that is too small for its keys shows.
func TestTableOfKeys(t *testing.T) {
	limiter := admin.Control(algo.Must(algo.NewTokenBucket(algo.PerHour(3), algo.MaxKeys(1))))
	a := newAdmin(t, admin.WithPolicy("p", limiter), admin.WithPolicy("flight", failing{}))
	for i := range 1000 {
		spend(t, limiter, fmt.Sprint(i), 1)
	}
	table := at(t, state(t, a), "policies", 0, "table")
	require.Positive(t, at(t, table, "keys"))
	require.Positive(t, at(t, table, "capacity"))
	require.Greater(t, at(t, table, "overflowed"), 500.0)
	require.Nil(t, at(t, state(t, a), "policies", 1, "table"))
}

// The table is found beneath every wrapper, inside a Control and around it.
func TestTableBeneathWrappers(t *testing.T) {
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"Shadow": algo.Shadow, "Switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"All":     func(l algo.Limiter) algo.Limiter { return algo.All(l, algo.Unlimited()) },
		"Control": func(l algo.Limiter) algo.Limiter { return admin.Control(l) },
		"Ban": func(l algo.Limiter) algo.Limiter {
			return algo.Must(guard.NewBan(l, algo.PerHour(9), time.Minute, time.Hour))
		},
	} {
		inner := bucket(t, algo.PerHour(3))
		spend(t, inner, "ada", 1)
		limiter := admin.Control(wrap(inner))
		require.Equal(t, inner.Stats(), limiter.Stats(), name)
		a := newAdmin(t, admin.WithPolicy("in", limiter), admin.WithPolicy("around", wrap(limiter)))
		for i := range 2 {
			require.Equal(t, 1.0, at(t, state(t, a), "policies", i, "table", "keys"), name)
		}
	}
}

// The time that decisions wait for Redis is the mean of what events say.
func TestTimeToRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t)
		for _, wait := range []time.Duration{time.Millisecond, 3 * time.Millisecond} {
			e := event(telemetry.Allowed, algo.Decision{Allowed: true, Source: algo.SourceRemote})
			e.Waited = wait
			a.Observe(e)
		}
		e := event(telemetry.Allowed, algo.Decision{Allowed: true})
		e.Waited = time.Hour
		a.Observe(e)
		time.Sleep(time.Second)
		s := state(t, a)
		require.Equal(t, 4000.0, total(t, s, "p", "remote-us"))
		require.Equal(t, 2.0, total(t, s, "p", "remote"))
	})
}

package httpmw_test

import (
	"bytes"
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// sometimes is a key function that finds the identity of n requests of ten.
func sometimes(n int) keyfunc.HTTP {
	calls := 0
	return func(*http.Request) (string, error) {
		if calls++; calls%10 < n {
			return "alice", nil
		}
		return "", keyfunc.ErrNoKey
	}
}

// TestMisconfigurationIsLogged: a service that is wired wrongly, but for a reason that only its
// requests show, logs that once, and again after an hour if it goes on. Any other is silent.
func TestMisconfigurationIsLogged(t *testing.T) {
	const noKey, trial, off = "code=keyfunc.no_key policy=users", "code=algo.trial_unobserved policy=users", "code=algo.switched_off limit=users"
	users := httpmw.WithName("users")
	switched := func(on bool) algo.Limiter {
		s := algo.NewSwitch(bucket(t, algo.PerSecond(10)))
		if s.Off(); on {
			s.On()
		}
		return s
	}
	shadow := func() algo.Limiter { return algo.Shadow(bucket(t, algo.PerSecond(10))) }
	observed := httpmw.WithObserver(func(telemetry.Event) {})
	plans := func(plan keyfunc.HTTP) func(http.Handler) http.Handler {
		one := []httpmw.Policy{{Limiter: bucket(t, algo.PerSecond(10)), Key: keyfunc.Global()}}
		return httpmw.NewPlans(plan, map[string][]httpmw.Policy{"alice": one, "": one}).Limit
	}
	for name, row := range map[string]struct {
		wire      func() func(http.Handler) http.Handler
		want      string // "" for silence
		afterHour bool
	}{
		"no request has a key": {func() func(http.Handler) http.Handler {
			return httpmw.Limit(bucket(t, algo.PerSecond(10)), sometimes(0), users)
		}, noKey, true},
		"no request has a key, Skip": {func() func(http.Handler) http.Handler {
			return httpmw.Limit(bucket(t, algo.PerSecond(10)), sometimes(0), users, httpmw.WithMissingKey(httpmw.Skip))
		}, noKey, false},
		"no request has a key, 401": {func() func(http.Handler) http.Handler {
			return httpmw.Limit(bucket(t, algo.PerSecond(10)), sometimes(0), users, httpmw.WithMissingKey(401))
		}, "", false},
		"two of ten have a key": {func() func(http.Handler) http.Handler {
			return httpmw.Limit(bucket(t, algo.PerSecond(10)), sometimes(2), users)
		}, "", false},
		"no request has a plan":  {func() func(http.Handler) http.Handler { return plans(sometimes(0)) }, "code=keyfunc.no_key policy=plans", false},
		"two of ten have a plan": {func() func(http.Handler) http.Handler { return plans(sometimes(2)) }, "", false},
		"off":                    {func() func(http.Handler) http.Handler { return httpmw.Limit(switched(false), keyfunc.Global(), users) }, off, true},
		"on":                     {func() func(http.Handler) http.Handler { return httpmw.Limit(switched(true), keyfunc.Global(), users) }, "", false},
		"on trial, not observed": {func() func(http.Handler) http.Handler {
			return httpmw.Limit(algo.All(bucket(t, algo.PerHour(10)), shadow()), keyfunc.Global(), users)
		}, trial, false},
		"on trial, unlisted by ByKey": {func() func(http.Handler) http.Handler {
			l := algo.Shadow(bucket(t, algo.PerHour(10)))
			return httpmw.Limit(algo.ByKey(func(context.Context, string) algo.Limiter { return l }), keyfunc.Global(), users)
		}, trial, false},
		"on trial, unlisted, observed": {func() func(http.Handler) http.Handler {
			l := algo.Shadow(bucket(t, algo.PerHour(10)))
			return httpmw.Limit(algo.ByKey(func(context.Context, string) algo.Limiter { return l }), keyfunc.Global(), users, observed)
		}, "", false},
		"on trial, unlisted, one of two policies": {func() func(http.Handler) http.Handler {
			l := algo.Shadow(bucket(t, algo.PerHour(10)))
			return httpmw.Limits([]httpmw.Policy{
				{Limiter: bucket(t, algo.PerHour(1e6)), Key: keyfunc.Global(), Name: "all"},
				{Limiter: algo.ByKey(func(context.Context, string) algo.Limiter { return algo.All(l) }), Key: keyfunc.Global(), Name: "users"},
			})
		}, trial, false},
		"on trial, observed": {func() func(http.Handler) http.Handler {
			return httpmw.Limit(shadow(), keyfunc.Global(), users, observed)
		}, "", false},
		"off, not observed": {func() func(http.Handler) http.Handler {
			return httpmw.Limit(algo.All(switched(false)), keyfunc.Global(), users)
		}, off, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var handler http.Handler
				var out bytes.Buffer
				defer log.SetOutput(log.Writer())
				log.SetOutput(&out)
				requests := func(lines int) {
					t.Helper()
					if row.want == "" {
						lines = 0
					}
					for range 1000 {
						serve(handler, get())
					}
					require.Equal(t, lines, strings.Count(out.String(), "\n"), out.String())
					if row.want != "" {
						require.Equal(t, lines, strings.Count(out.String(), row.want), out.String())
					}
				}
				httpmw.ResetWarnings()
				handler = row.wire()(ok)
				requests(1)
				requests(1)
				time.Sleep(time.Hour)
				if row.afterHour {
					requests(2)
				} else {
					requests(1)
				}
			})
		})
	}
}

// TestAnswerOfALimitOnTrialIsSilent: a handler that asks a limit by itself sees what it decides.
func TestAnswerOfALimitOnTrialIsSilent(t *testing.T) {
	require.Empty(t, logged(t, func() {
		l := algo.Shadow(bucket(t, algo.PerSecond(10)))
		httpmw.Answer(httptest.NewRecorder(), get(), l, "k", algo.Decision{Allowed: true, Source: algo.SourceTrial})
	}))
}

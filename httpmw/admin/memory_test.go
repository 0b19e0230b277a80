package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/keyfunc"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A million keys, methods and errors over ten minutes take no more memory than
// a few, and the ones that are limited most are found among them.
func TestMillionKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t)
		feed := func(from, to int) {
			for i := from; i < to; i++ {
				e := event(telemetry.Denied, algo.Decision{Reason: algo.Quota})
				e.KeyHash = uint64(i) + 1000
				e.Method = "/service/method" + strconv.Itoa(i)
				if i%10 == 0 {
					e.KeyHash = uint64(1 + i/10%3) // three of the keys are a tenth of all
				}
				if i%1000 == 1 {
					e.Result, e.Err = telemetry.FailedClosed, errors.New(strconv.Itoa(i))
				}
				a.Observe(e)
				if i%1000 == 0 {
					time.Sleep(600 * time.Millisecond)
				}
			}
		}
		feed(0, 600_000)
		before := heap()
		feed(600_000, 1_600_000)
		grown := int64(heap()) - int64(before)
		require.Less(t, grown, int64(64<<10), "bytes for a million keys")

		s := state(t, a)
		for i := range 3 {
			require.Contains(t, []any{"0000000000000001", "0000000000000002", "0000000000000003"}, at(t, s, "top", i, "hash"))
			// 300 s hold half a million events; each of the three has a thirtieth,
			// and the sketches cover at least four of the five minutes.
			require.Greater(t, at(t, s, "top", i, "most"), 400_000.0/30)
		}
		body, err := json.Marshal(s)
		require.NoError(t, err)
		require.Less(t, len(body), 100_000)
		require.LessOrEqual(t, len(s["decisions"].([]any)), 96)
	})
}

// Unregistered names are distinguished up to a number, and forgotten
// when they are idle; registered ones have their place always.
func TestMillionPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t, admin.WithPolicy("mine", bucket(t, algo.PerSecond(1))))
		feed := func(n int) {
			for i := range n {
				e := event(telemetry.Allowed, algo.Decision{})
				e.Policy = fmt.Sprint("made up ", i)
				a.Observe(e)
			}
		}
		feed(10_000)
		before := heap()
		feed(100_000)
		require.Less(t, int64(heap())-int64(before), int64(64<<10))
		e := event(telemetry.Allowed, algo.Decision{})
		e.Policy = "mine"
		a.Observe(e)
		time.Sleep(time.Second)
		s := state(t, a)
		require.Len(t, s["policies"], 65)
		require.Equal(t, "mine", at(t, s, "policies", 0, "name"))
		require.Equal(t, 1.0, total(t, s, "mine", "admitted"))
		require.Equal(t, 110_000.0-63-63, total(t, s, "", "admitted"), "names beyond the limit are counted together")

		time.Sleep(10 * time.Minute)
		e.Policy, e.At = "new", time.Now()
		a.Observe(e)
		time.Sleep(time.Second)
		require.Equal(t, 1.0, total(t, state(t, a), "new", "admitted"))
		require.Len(t, state(t, a)["policies"], 2)
	})
}

// Everything at once, for the race detector; and nothing is lost.
func TestConcurrently(t *testing.T) {
	limiter := admin.Control(bucket(t, algo.PerHour(1000)))
	a := newAdmin(t, admin.WithPolicy("p", limiter), admin.WithAuthorize(anybody))
	const each, all = 4000, 4
	var wg sync.WaitGroup
	for range all {
		wg.Go(func() {
			for range each {
				e := event(telemetry.Denied, algo.Decision{})
				e.KeyHash = rand.Uint64N(500)
				e.Err = errors.New("x")
				a.Observe(e)
			}
		})
		wg.Go(func() {
			for i := range 50 {
				_ = state(t, a)
				ask(t, a, "block", fmt.Sprintf(`{"policy":"p","key":"k%d","seconds":60,"unseen":true}`, i%7))
				ask(t, a, "why", `{"policy":"p","key":"k1"}`)
				ask(t, a, "switch", fmt.Sprintf(`{"policy":"p","on":%v}`, i%2 == 0))
				require.NoError(t, a.Update(admin.WithPolicy("p", limiter)))
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return total(t, state(t, a), "p", "denied") == each*all }, 5*time.Second, 50*time.Millisecond)
}

// Update changes the display and keeps the counts; an error changes
// nothing.
func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t, admin.WithPolicy("p", bucket(t, algo.PerSecond(1))), admin.WithTitle("shop"))
		a.Observe(event(telemetry.Allowed, algo.Decision{}))
		time.Sleep(time.Second)
		require.ErrorContains(t, a.Update(admin.WithPolicy("x", nil)), `policy "x"`)
		require.Len(t, state(t, a)["policies"], 1)
		require.NoError(t, a.Update(admin.WithPolicy("q", bucket(t, algo.PerSecond(7))), admin.WithPolicy("p", bucket(t, algo.PerSecond(2)))))
		s := state(t, a)
		require.Equal(t, "shop", s["title"])
		require.Equal(t, 7.0, at(t, s, "policies", 0, "limit", "quota"))
		require.Equal(t, 2.0, at(t, s, "policies", 1, "limit", "quota"))
		require.Equal(t, 1.0, total(t, s, "p", "admitted"))
	})
}

func TestOptionsThatAreWrong(t *testing.T) {
	l := bucket(t, algo.PerSecond(1))
	for want, opts := range map[string][]admin.Option{
		`the zero Option is not an option`: {{}},
		`duplicate option WithTitle`:       {admin.WithTitle("a"), admin.WithTitle("b")},
		`duplicate option WithText p`:      {admin.WithPolicy("p", l), admin.WithText("p", "1/s"), admin.WithText("p", "2/s")},
		`policy "p": the limiter is nil`:   {admin.WithPolicy("p", nil)},
		`duplicate option WithPolicy p`:    {admin.WithPolicy("p", l), admin.WithPolicy("p", l)},
		`policy: the name is ""`:           {admin.WithPolicy("", l)},
		`policy: the name is "\xff"`:       {admin.WithPolicy("\xff", l)},
		`adaptive "a": the limiter is nil`: {admin.WithAdaptive("a", nil)},
		`store "s": the store is nil`:      {admin.WithStore("s", nil)},
		`authorize: the function is nil`:   {admin.WithAuthorize(nil)},
		`authorize read: the function`:     {admin.WithAuthorizeRead(nil)},
		`logger is nil`:                    {admin.WithLogger(nil)},
		`title: the name is ""`:            {admin.WithTitle("")},
	} {
		a, err := admin.New(opts...)
		require.Nil(t, a, "half a page would panic on its first request")
		require.ErrorContains(t, err, "admin: ")
		require.ErrorContains(t, err, want)
	}
	require.PanicsWithValue(t, "admin: Control: the limiter is nil", func() { admin.Control(nil) })
}

func BenchmarkObserve(b *testing.B) {
	for name, e := range map[string]telemetry.Event{
		"admitted": event(telemetry.Allowed, algo.Decision{}),
		"remote":   event(telemetry.Allowed, algo.Decision{Source: algo.SourceRemote}),
		"denied":   event(telemetry.Denied, algo.Decision{Reason: algo.Quota}),
	} {
		e.KeyHash = keyfunc.Hash("ada")
		b.Run(name, func(b *testing.B) {
			a := newAdmin(b, admin.WithPolicy("p", bucket(b, algo.PerSecond(1))))
			e.At = time.Now()
			b.ReportAllocs()
			for b.Loop() {
				a.Observe(e)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			a := newAdmin(b, admin.WithPolicy("p", bucket(b, algo.PerSecond(1))))
			e.At = time.Now()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					a.Observe(e)
				}
			})
		})
	}
	b.Run("denied/new keys", func(b *testing.B) {
		a := newAdmin(b)
		e := event(telemetry.Denied, algo.Decision{Reason: algo.Quota})
		b.ReportAllocs()
		for b.Loop() {
			e.KeyHash++
			a.Observe(e)
		}
	})
}

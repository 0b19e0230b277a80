package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOverload: real clients are answered behind every strategy, and nothing
// runs after a stop or when no page is open.
func TestOverload(t *testing.T) {
	p, err := newPlayground()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	o := p.overload
	for _, s := range strategies {
		leave, err := p.audience.enter()
		require.NoError(t, err)
		from := o.meter.taken
		require.NoError(t, o.obey(order{true, s.Name, leastLoad}))
		require.Equal(t, s.make != nil, o.limiter.Load() != nil)
		require.Eventually(t, func() bool {
			seen, _ := o.meter.since(from)
			answered := 0
			for _, m := range seen {
				require.Equal(t, s.Name, m.Strategy)
				answered += m.Answers[good] + m.Answers[late]
			}
			return answered > 0
		}, time.Minute, 10*time.Millisecond, s.Name)
		leave()
		now, _ := o.say()
		require.False(t, now.Running, "the last page is gone")
		require.Nil(t, o.stop)
	}
	require.NoError(t, o.obey(order{true, "fixed", leastLoad}))
	require.NoError(t, o.obey(order{false, "fixed", leastLoad}))
	now, why := o.say()
	require.False(t, now.Running)
	require.Contains(t, why, "fixed")
	require.Zero(t, o.limiter.Load().InFlight())
}

func TestOrdersAreChecked(t *testing.T) {
	p, err := newPlayground()
	require.NoError(t, err)
	defer p.Close()
	o := p.overload
	require.ErrorContains(t, o.obey(order{true, "none", mostLoad + 1}), "load is 501")
	require.ErrorContains(t, o.obey(order{true, "none", 0}), "load is 0")
	require.ErrorContains(t, o.obey(order{true, "magic", 100}), "strategy: unknown name")
	require.Nil(t, o.stop)
}

// TestOnlyWhileWatched: no page, no load.
func TestOnlyWhileWatched(t *testing.T) {
	p, url := serve(t)
	response, body := ask(t, http.MethodPost, url+"/overload", `{"running":true,"strategy":"fixed","load":25}`)
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	require.Contains(t, body, "no page is open")
	require.Nil(t, p.overload.stop)

	leave, err := p.audience.enter()
	require.NoError(t, err)
	response, _ = ask(t, http.MethodPost, url+"/overload", `{"running":true,"strategy":"fixed","load":25}`)
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	now, _ := p.overload.say()
	require.Equal(t, order{true, "fixed", 25}, now)
	leave()
	now, _ = p.overload.say()
	require.False(t, now.Running)
}

// TestClientsEnd: clients whose server is gone report it, and end when they are stopped.
func TestClientsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	reports := make(chan report, 1000)
	ended, err := runClients(ctx, "http://127.0.0.1:1", 100, func(r report) { reports <- r })
	require.NoError(t, err)
	for r := range reports {
		require.Zero(t, r.Answers[good])
		if r.Answers[gaveUp] > 0 {
			break
		}
	}
	cancel()
	<-ended
}

// TestBurn: twice the work takes longer.
func TestBurn(t *testing.T) {
	shortest := func(d time.Duration) time.Duration {
		least := time.Hour
		for range 5 {
			began := time.Now()
			burn(d)
			least = min(least, time.Since(began))
		}
		return least
	}
	require.Greater(t, shortest(20*time.Millisecond), shortest(5*time.Millisecond))
}

func TestMeter(t *testing.T) {
	var m meter
	for i := range moments + 10 {
		m.add(moment{Limit: i})
	}
	kept, next := m.since(0)
	require.Len(t, kept, moments)
	require.Equal(t, 10, kept[0].Limit)
	require.Equal(t, moments+10, next)
	kept, _ = m.since(next - 1)
	require.Len(t, kept, 1)
	kept, _ = m.since(next)
	require.Empty(t, kept)

	var p peak
	p.add(3)
	p.add(-2)
	require.EqualValues(t, 3, p.take())
	require.EqualValues(t, 1, p.take())

	require.Zero(t, percentile(nil, 50))
	times := []time.Duration{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}
	require.EqualValues(t, 2, percentile(times, 50))
	require.EqualValues(t, 3, percentile(times, 99))
}

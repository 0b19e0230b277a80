// Package partners_test compares ways to call an API that allows 30 calls a second, with a burst
// of 6, and answers others with 429 and Retry-After: 2: two processes, 100 workers each, virtual time.
package partners_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

// api is 30 ms away.
type api struct {
	limit      *algo.RateLimiter
	ok, denied atomic.Int64
}

// RoundTrip answers a call.
func (a *api) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(30 * time.Millisecond)
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	if a.limit.Allow("", 1) {
		a.ok.Add(1)
	} else {
		a.denied.Add(1)
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", "2")
	}
	time.Sleep(30 * time.Millisecond)
	return resp, nil
}

// gate paces the calls of a process: wait returns what hears the answer.
type gate func() (heard func(denied bool))

// by calls through a gate. Workers sleep alone after a 429.
func (a *api) by(wait gate) func() {
	return func() {
		heard := wait()
		resp, _ := a.RoundTrip(nil)
		denied := resp.StatusCode != http.StatusOK
		if heard(denied); denied {
			time.Sleep(2 * time.Second)
		}
	}
}

// limited is a limiter with a rate that hear may change.
func limited(l *rate.Limiter, hear func(denied bool)) gate {
	return func() func(bool) { _ = l.Wait(context.Background()); return hear }
}

// aimd adds one call a second each second, and halves the rate at most once in a Retry-After.
func aimd() gate {
	l, begun := rate.NewLimiter(10, 1), time.Now()
	var mu sync.Mutex
	cut, raised := begun, begun
	return limited(l, func(denied bool) {
		mu.Lock()
		defer mu.Unlock()
		switch now := time.Now(); {
		case denied && now.Sub(cut) > 2*time.Second:
			cut, raised = now, now
			l.SetLimit(max(l.Limit()/2, 1))
		case !denied && now.Sub(raised) > time.Second:
			raised = now
			l.SetLimit(l.Limit() + 1)
		}
	})
}

// adaptive is the rule of an AWS client, asked each 20 ms: its own sleep may be 0 ns.
func adaptive() gate {
	mode := retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
		o.FailOnNoAttemptTokens = true
		o.Throttles = []retry.IsErrorThrottle{retry.IsErrorThrottleFunc(func(err error) aws.Ternary { return aws.BoolTernary(err != nil) })}
	})
	return func() func(bool) {
		release, err := mode.GetAttemptToken(context.Background())
		for ; err != nil; release, err = mode.GetAttemptToken(context.Background()) {
			time.Sleep(20 * time.Millisecond)
		}
		return func(denied bool) { _ = release(map[bool]error{true: http.ErrAbortHandler}[denied]) }
	}
}

// learned calls by a limit of this module.
func (a *api) learned(l algo.Limiter) func() {
	c := &http.Client{Transport: client.Transport(a, l, keyfunc.Global())}
	return func() {
		if resp, err := c.Get("http://partner/"); err == nil {
			_ = resp.Body.Close()
		}
	}
}

// TestWays prints the table of docs/guides/partners.md.
func TestWays(t *testing.T) {
	fixed := func(perSecond rate.Limit) gate { return limited(rate.NewLimiter(perSecond, 1), func(bool) {}) }
	var shared *learn.Limit
	for _, way := range []struct {
		name    string
		process func(a *api) func()
	}{
		{"`x/time/rate`, 14 a second in each", func(a *api) func() { return a.by(fixed(14)) }},
		{"`x/time/rate`, 30 a second in each", func(a *api) func() { return a.by(fixed(30)) }},
		{"AIMD: +1 a second, half after a 429", func(a *api) func() { return a.by(aimd()) }},
		{"adaptive mode of aws-sdk-go-v2", func(a *api) func() { return a.by(adaptive()) }},
		{"`learn.New` in each", func(a *api) func() { return a.learned(learn.New(algo.PerSecond(10))) }},
		{"one learned limit, as on Redis", func(a *api) func() { return a.learned(shared) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &api{limit: algo.Must(algo.NewTokenBucket(algo.PerSecond(30), algo.Burst(6)))}
			shared = learn.New(algo.PerSecond(10))
			end := time.Now().Add(4 * time.Minute)
			var all sync.WaitGroup
			for range 2 {
				call := way.process(a)
				for range 100 {
					all.Go(func() {
						for time.Now().Before(end) {
							call()
						}
					})
				}
			}
			time.Sleep(2 * time.Minute)
			a.ok.Store(0)
			a.denied.Store(0)
			time.Sleep(2 * time.Minute)
			ok, denied := float64(a.ok.Load()), float64(a.denied.Load())
			all.Wait()
			t.Logf("| %s | %.1f | %.0f |", way.name, ok/120, denied/2)
			require.Positive(t, ok)
		})
	}
}

package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

func answer(statuses ...int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, s := range statuses {
			w.WriteHeader(s)
		}
	})
}

// stream answers with a content type.
func stream(contentType string, statuses ...int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		answer(statuses...).ServeHTTP(w, r)
	})
}

// quietly runs f in a goroutine of its own, whatever becomes of that.
func quietly(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

func TestC2_Outcomes(t *testing.T) {
	refund := func(statuses ...int) httpmw.Option {
		return httpmw.WithRefundIf(func(s int) bool {
			for _, wanted := range statuses {
				if s == wanted {
					return true
				}
			}
			return false
		})
	}
	for _, row := range []struct {
		name string
		h    http.Handler
		opts []httpmw.Option
		want algo.Outcome
	}{
		{"nothing written", answer(), nil, algo.Succeeded},
		{"200", ok, nil, algo.Succeeded},
		{"302", answer(302), nil, algo.Succeeded},
		{"404", answer(404), nil, algo.Failed | algo.Untimed},
		{"denied further in", httpmw.Limit(denying(algo.Quota, 1), key("k"))(ok), nil, algo.Canceled},
		{"event stream", stream("text/event-stream"), nil, algo.Succeeded | algo.Untimed},
		{"event stream, with parameters", stream("text/event-stream; charset=utf-8"), nil, algo.Succeeded | algo.Untimed},
		{"event stream that fails", stream("text/event-stream", 500), nil, algo.Failed},
		{"500", answer(500), nil, algo.Failed},
		{"503 after 103", answer(103, 503), nil, algo.Failed},
		{"the first status counts", answer(200, 500), nil, algo.Succeeded},
		{"panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }), nil, algo.Failed},
		{"abort", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), nil, algo.Failed},
		{"exit", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runtime.Goexit() }), nil, algo.Failed},
		{"refunded", answer(404), []httpmw.Option{refund(404)}, algo.Canceled},
		{"not refunded", answer(404), []httpmw.Option{refund(500)}, algo.Failed | algo.Untimed},
		{"implicit 200 refunded", answer(), []httpmw.Option{refund(200)}, algo.Canceled},
		{"written 200 refunded", ok, []httpmw.Option{refund(200)}, algo.Canceled},
		{"panic refunded", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }),
			[]httpmw.Option{refund(500)}, algo.Canceled},
		{"panic in refund", ok, []httpmw.Option{httpmw.WithRefundIf(func(int) bool { panic("boom") })}, algo.Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newSlots(1)
			h := httpmw.Limit(l, key("k"), row.opts...)(row.h)
			quietly(func() { serve(h, get()) })
			require.Zero(t, l.inFlight())
			require.Equal(t, 1, l.released(row.want))
		})
	}
}

// A tunnel lives as long as its client likes, so its outcome is untimed.
func TestTunnel(t *testing.T) {
	l := newSlots(1)
	r := get()
	r.Method = http.MethodConnect
	serve(httpmw.Limit(l, key("k"))(ok), r)
	require.Equal(t, 1, l.released(algo.Succeeded|algo.Untimed))
}

// The slot is held as long as the handler works, even if the client is gone.
func TestSlotIsHeldUntilTheHandlerReturns(t *testing.T) {
	l := newSlots(1)
	ctx, cancel := context.WithCancel(t.Context())
	h := httpmw.Limit(l, key("k"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		require.EqualValues(t, 1, l.inFlight())
	}))
	serve(h, get().WithContext(ctx))
	require.Zero(t, l.inFlight())
}

// Only failures count: a quota for guessing passwords.
func TestRefundIf(t *testing.T) {
	l := bucket(t, algo.PerHour(2))
	status := http.StatusOK
	h := httpmw.Limit(l, key("k"), httpmw.WithRefundIf(func(s int) bool { return s < 400 }))(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	for range 100 {
		require.Equal(t, 200, serve(h, get()).Code)
	}
	status = http.StatusUnauthorized
	require.Equal(t, 401, serve(h, get()).Code)
	require.Equal(t, 401, serve(h, get()).Code)
	require.Equal(t, 429, serve(h, get()).Code)
}

func TestLeaseFrom(t *testing.T) {
	l := bucket(t, algo.PerHour(100))
	h := httpmw.Limit(l, key("k"), httpmw.WithLeaseInContext())(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			lease := algo.LeaseFrom(r.Context())
			require.EqualValues(t, 99, lease.Remaining)
			lease.Settle(40)
		}))
	serve(h, get())
	lease, err := l.Acquire(t.Context(), "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 60, lease.Remaining)

	none := algo.LeaseFrom(context.Background())
	none.Settle(5)
	none.Release(algo.Canceled)
	require.False(t, none.Allowed)
	failing := &scripted{err: errors.New("down")}
	serve(httpmw.Limit(failing, key("k"), httpmw.WithLeaseInContext(), httpmw.WithFailOpen())(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			algo.LeaseFrom(r.Context()).Settle(3)
		})), get())
}

// Releasing early, from the handler, releases once.
func TestReleaseFromTheHandler(t *testing.T) {
	l := newSlots(1)
	h := httpmw.Limit(l, key("k"), httpmw.WithLeaseInContext())(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			algo.LeaseFrom(r.Context()).Release(algo.Failed | algo.Untimed)
			require.Zero(t, l.inFlight())
		}))
	h.ServeHTTP(httptest.NewRecorder(), get())
	require.Zero(t, l.inFlight())
	require.Equal(t, 1, l.released(algo.Failed|algo.Untimed))
}

// The response writer is watched where a place in flight hangs on the end of
// the connection, and passed on unchanged elsewhere, whatever wraps the limiter.
func TestWriterIsWatchedForSlotsOnly(t *testing.T) {
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"itself": func(l algo.Limiter) algo.Limiter { return l },
		"switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"shadow": algo.Shadow,
		"all":    func(l algo.Limiter) algo.Limiter { return algo.All(bucket(t, algo.PerSecond(5)), algo.Shadow(l)) },
	} {
		watched := func(l algo.Limiter) bool {
			var got http.ResponseWriter
			w := httptest.NewRecorder()
			httpmw.Limit(wrap(l), key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })).ServeHTTP(w, get())
			return got != http.ResponseWriter(w)
		}
		require.False(t, watched(bucket(t, algo.PerSecond(5))), name)
		require.True(t, watched(newSlots(2)), name)
	}
}

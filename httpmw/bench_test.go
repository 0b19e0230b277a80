package httpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

// sink is a response writer without a cost of its own. Like a server it has a
// header map for each response, which reset empties.
type sink struct{ header http.Header }

func newSink() *sink                                 { return &sink{make(http.Header, 8)} }
func (s *sink) Header() http.Header                  { return s.header }
func (s *sink) Write(b []byte) (int, error)          { return len(b), nil }
func (s *sink) WriteString(text string) (int, error) { return len(text), nil }
func (s *sink) WriteHeader(int)                      {}
func (s *sink) reset()                               { clear(s.header) }

var bare = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func roomy(t testing.TB) algo.Limiter { return bucket(t, algo.PerSecond(1e9), algo.Burst(1e9)) }

func spent(t testing.TB) algo.Limiter {
	l := bucket(t, algo.PerHour(1))
	l.Allow("192.0.2.1", 1)
	l.Allow("", 1)
	return l
}

func BenchmarkLimit(b *testing.B) {
	ip := keyfunc.ClientIP()
	none := httpmw.WithHeaders(httpmw.None)
	for _, row := range []struct {
		name string
		h    http.Handler
	}{
		{"bare", bare},
		{"headers", httpmw.Limit(roomy(b), ip)(bare)},
		{"legacy", httpmw.Limit(roomy(b), ip, httpmw.WithHeaders(httpmw.Legacy))(bare)},
		{"none", httpmw.Limit(roomy(b), ip, none)(bare)},
		{"wrapped", httpmw.Limit(newSlots(1<<40), ip, none)(bare)},
		{"limits", httpmw.Limits([]httpmw.Policy{
			{Name: "a", Limiter: roomy(b), Key: ip}, {Name: "b", Limiter: roomy(b), Key: ip},
		})(bare)},
		{"denied", httpmw.Limit(spent(b), ip)(bare)},
		{"denied-none", httpmw.Limit(spent(b), ip, none)(bare)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			w, r := newSink(), get()
			for b.Loop() {
				row.h.ServeHTTP(w, r)
				w.reset()
			}
		})
	}
}

// BenchmarkPolicies is what each policy more costs, beside the limiters alone, as one of [algo.All]
// and in one decision of [algo.AcquireAll].
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		ps, reqs, limiters := make([]httpmw.Policy, n), make([]algo.Request, n), make([]algo.Limiter, n)
		for i := range n {
			limiters[i] = roomy(b)
			ps[i] = httpmw.Policy{Name: fmt.Sprint("p", i), Limiter: limiters[i], Key: keyfunc.Global()}
			reqs[i] = algo.Request{Limiter: limiters[i], N: 1}
		}
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		ctx, all := context.Background(), algo.All(limiters...)
		run("AcquireAll", func() {
			lease, _ := algo.AcquireAll(ctx, reqs...)
			lease.Release(algo.Succeeded)
		})
		run("All", func() {
			lease, _ := all.Acquire(ctx, "", 1)
			lease.Release(algo.Succeeded)
		})
		w, r, h := newSink(), get(), httpmw.Limits(ps, httpmw.WithHeaders(httpmw.None))(bare)
		run("Limits", func() { h.ServeHTTP(w, r) })
	}
}

// BenchmarkFloor is the work that no middleware can avoid: the key and the
// limiter.
func BenchmarkFloor(b *testing.B) {
	b.ReportAllocs()
	ip, l, r := keyfunc.ClientIP(), roomy(b), get()
	for b.Loop() {
		key, _ := ip(r)
		lease, _ := l.Acquire(r.Context(), key, 1)
		lease.Release(algo.Succeeded)
	}
}

func TestAllocations(t *testing.T) {
	ip := keyfunc.ClientIP()
	none := httpmw.WithHeaders(httpmw.None)
	for _, row := range []struct {
		name string
		h    http.Handler
		most float64
	}{
		{"headers", httpmw.Limit(roomy(t), ip)(bare), 1},
		{"headers of a key that has spent more", httpmw.Limit(bucket(t, algo.PerHour(1e9)), ip)(bare), 2},
		{"legacy", httpmw.Limit(roomy(t), ip, httpmw.WithHeaders(httpmw.Legacy))(bare), 1},
		{"none", httpmw.Limit(roomy(t), ip, none)(bare), 0},
		{"wrapped", httpmw.Limit(newSlots(1), ip, none)(bare), 3},
		{"denied", httpmw.Limit(spent(t), ip)(bare), 3},
	} {
		w, r := newSink(), get()
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
			row.h.ServeHTTP(w, r)
			w.reset()
		}), row.most, row.name)
	}
}

package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// What was spent without Redis is forgotten, or becomes debt.
func TestRecovery(t *testing.T) {
	t.Parallel()
	for _, recovery := range []distributed.Recovery{distributed.Forget, distributed.Settle} {
		t.Run(recovery.String(), func(t *testing.T) {
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server)
			var e events
			store := newStore(t, viaProxy(t, proxy), append(quick(&e), distributed.WithRecovery(recovery))...)
			direct := newStore(t, server.Client())
			for name, make := range makers(store) {
				l := must[*distributed.Limiter](t)(make(name, algo.PerDay(100)))
				remote(t, l, "k", 10)
			}
			proxy.Set(redistest.Fault{Refuse: true})
			l := must[*distributed.Limiter](t)(store.TokenBucket("trip", algo.PerDay(100)))
			trip(t, l, &e)
			for name, make := range makers(store) {
				l := must[*distributed.Limiter](t)(make(name, algo.PerDay(100)))
				for range 20 {
					require.Equal(t, algo.SourceFallback, acquire(t, l, "k", 1).Source)
				}
			}
			proxy.Set(redistest.Fault{})
			require.Eventually(t, func() bool {
				s := e.states()
				return s[len(s)-1] == distributed.Closed
			}, 20*time.Second, time.Millisecond)
			want := map[distributed.Recovery]int64{distributed.Forget: 90, distributed.Settle: 70}[recovery]
			for name, make := range makers(direct) {
				l := must[*distributed.Limiter](t)(make(name, algo.PerDay(100)))
				require.Eventually(t, func() bool { return remote(t, l, "k", 0).Remaining == want },
					5*time.Second, 5*time.Millisecond, name)
			}
		})
	}
}

package distributed

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cases"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/internal/remote"
)

// TestL2_FirstAndDecide: the scripts split a charge between a plan and credits as decide
// does, and leave both as the next reply says.
func TestL2_FirstAndDecide(t *testing.T) {
	client := redistest.Start(t).Client()
	s, err := New(client, WithTimeout(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	credits, err := s.Credits("credits")
	require.NoError(t, err)
	bucket, err := s.TokenBucket("bucket", algo.Per(700, time.Second), algo.Burst(9))
	require.NoError(t, err)
	waits, err := s.TokenBucket("waits", algo.Per(900, time.Second), algo.Burst(5), algo.MaxWait(2*time.Millisecond))
	require.NoError(t, err)
	window, err := s.FixedWindow("window", algo.Per(9, 20*time.Millisecond))
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	split := 0
	for _, plan := range []*Limiter{bucket, waits, window} {
		p, err := First(plan, credits)
		require.NoError(t, err)
		balance := int64(0)
		total := cases.Count(1500, 50_000)
		for range total {
			if rnd.IntN(6) == 0 {
				n := rnd.Int64N(12) - 2
				runScript(t, client, remote.NewRequest(creditsScript, credits.redisKey(plan.name), remote.Args{opAdd, n}))
				balance += n
			}
			call := prepaidCall{p, plan.name, rnd.Int64N(16), plan.load()}
			split += requireSplit(t, client, call, &balance)
		}
	}
	require.Positive(t, split)
	t.Logf("L2: %d charges split between plan and credits", split)
}

// requireSplit charges once, compares with decide, and reports 1 if both paid.
func requireSplit(t *testing.T, client *redis.Client, call prepaidCall, balance *int64) int {
	r := call.request()
	reply := runScript(t, client, r)
	r.Now = reply[0]
	copy(r.Reply, reply[1:])
	d, _, has, paid := call.explain(r)
	require.Equal(t, max(*balance, 0), has)
	whole, _ := call.limit.explain(r.Answer(0), call.n)
	if whole.Allowed {
		require.Zero(t, paid)
	} else {
		require.Equal(t, decide.FromCredits(call.n, whole.Remaining, *balance), paid)
	}
	require.Equal(t, d.Allowed, r.Answer(0).Flag() == flagAdmitted)
	require.Equal(t, d.Allowed, r.Answer(1).Flag() == flagAdmitted)
	if !d.Allowed {
		return 0
	}
	*balance -= paid
	if paid > 0 && paid < call.n {
		return 1
	}
	return 0
}

package distributed

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// learnedAsModel does the same as learned.lua.
func learnedAsModel(m *decide.Learner, now int64, a remote.Args) []int64 {
	at, n := time.Duration(now)*time.Microsecond, a[1]
	sent, wait := at-time.Duration(a[3])*time.Microsecond, time.Duration(a[4])*time.Microsecond
	if a[5] > 0 {
		m.Told(float64(a[5]) / 1e6)
	}
	ahead, flag := m.Ahead(at), int64(flagAdmitted)
	switch {
	case a[0] == opAccepted:
		m.Accepted(at, sent, n)
		m.Closed(at, wait)
	case a[0] == opDenied:
		m.Denied(at, sent, n, wait)
	case a[0] == opCorrect:
		m.Correct(at, -n)
	case ahead > 0:
		flag = flagDenied
	case n > 0:
		m.Start(at, n)
	}
	return []int64{(ahead + time.Microsecond - 1).Microseconds(), int64(math.Ceil(m.Pace(at) * 1e6)), flag}
}

// The script decides as the model, at instants that are its last argument.
func TestLearnedAsTheModel(t *testing.T) {
	const clock = "tonumber(clock[1]) * 1000000 + tonumber(clock[2])"
	source := strings.Replace(learnedScript.Source(), clock, "tonumber(ARGV[7])", 1)
	require.NotEqual(t, learnedScript.Source(), source)
	script := remote.NewScript("learned", text(source), learnedScript.Args, learnedScript.Replies)
	c := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr()})
	defer c.Close()
	traces := cases.Count(40, 2000)
	for trace := range traces {
		rnd := rand.New(rand.NewPCG(uint64(trace), 3))
		start := int64(1+rnd.IntN(100)) * 1_000_000
		m := decide.NewLearner(float64(start) / 1e6)
		key := string(rune('a'+trace%26)) + strings.Repeat("x", trace/26)
		now := int64(1 + rnd.IntN(1_000_000))
		var open []int64 // instants at which calls were sent
		for range 150 {
			now += rnd.Int64N(200_000)
			n := 1 + rnd.Int64N(3)
			a := remote.Args{opAcquire, n, start, 0, 0, 0, now}
			if len(open) > 0 && rnd.IntN(2) == 0 {
				sent := open[0]
				open = open[1:]
				a[0] = opAccepted + rnd.Int64N(2)
				a[3] = now - sent
				if rnd.IntN(3) == 0 {
					a[4] = rnd.Int64N(3_000_000)
				}
				if trace%4 == 0 && rnd.IntN(3) == 0 {
					a[5] = 1 + rnd.Int64N(100_000_000)
				}
			} else if rnd.IntN(10) == 0 {
				a[0] = opCorrect
			}
			want := learnedAsModel(&m, now, a)
			if a[0] == opAcquire && want[0] == 0 {
				open = append(open, now)
			}
			got := runScript(t, c, remote.NewRequest(script, key, a))[1:]
			require.InDelta(t, float64(want[0]), float64(got[0]), 3, "%v", a)
			require.InEpsilon(t, float64(want[1]), float64(got[1]), 1e-4, "%v", a)
			require.Equal(t, want[2], got[2])
		}
	}
}

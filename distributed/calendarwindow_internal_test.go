package distributed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// atInstant is the script of windows at an instant that the test sets, in the keys
// sec and usec.
func atInstant(t *testing.T) *remote.Script {
	source := strings.Replace(prelude(), "redis.pcall('TIME')", "redis.call('MGET', 'sec', 'usec')", 1)
	require.NotEqual(t, prelude(), source)
	return remote.NewScript("fixed window", text(source+lua("fixedwindow")), fixedWindowScript.Args, fixedWindowScript.Replies)
}

// TestL2_W2_CalendarWindowOnRedis: script and decide agree on every decision in
// windows of all lengths, over edges, daylight saving and idle months, for clients
// whose clocks are up to a window wrong, with charges, settlements, refunds and
// resets; and all keys expire with their effect.
func TestL2_W2_CalendarWindowOnRedis(t *testing.T) {
	client, script := redistest.Start(t).Client(), atInstant(t)
	rnd := rand.New(rand.NewPCG(97, 98))
	for i := range cases.Count(60, 2000) {
		spec := algo.Spec{Algorithm: "fixed-window", Rate: algo.Per(1+rnd.Int64N(20), []time.Duration{24 * time.Hour, algo.Week, algo.Month, algo.Quarter}[rnd.IntN(4)]),
			Zone: []string{"Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "UTC"}[rnd.IntN(4)]}
		if spec.Rate.Period > algo.Week {
			spec.StartDay = rnd.Int64N(32)
		}
		made, err := newFixedWindow(spec)
		require.NoError(t, err)
		w, key := made.(*calendarWindow), fmt.Sprint("k", i)
		now := time.Date(2005+rnd.IntN(15), 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		var word, voided int64
		var charges []algo.Handle
		for range 40 {
			now += rnd.Int64N(2) * rnd.Int64N(spec.Rate.Period.Microseconds()/(1+rnd.Int64N(20)))
			begin, end := w.calendar.Period(time.UnixMicro(now))
			const minute = 60_000_000 // nearer to the edge the key might expire in real time, while the virtual time is fixed
			if rnd.IntN(8) == 0 || end.UnixMicro()-now < minute {
				now = end.UnixMicro() - minute*rnd.Int64N(2)
				begin, end = w.calendar.Period(time.UnixMicro(now))
			}
			skew := rnd.Int64N(3) - 1 // a clock in the window before, in this one, or in the one after
			wrong := map[int64]time.Time{-1: begin.Add(-1), 0: begin, 1: end}[skew]
			w.clock = func() time.Time { return wrong }
			require.NoError(t, client.MSet(t.Context(), "sec", now/1_000_000, "usec", now%1_000_000).Err())
			if end.UnixMicro() != w.decide.Reset(0, now) {
				t.Fatal("the windows of the model")
			}
			n := rnd.Int64N(spec.Rate.Count + 2)
			var a remote.Args
			forced := rnd.IntN(len(charges) + 1)
			switch op := rnd.IntN(6); {
			case op == 0 && forced < len(charges):
				h := charges[forced]
				a = w.refundArgs(h, n)
				if h.State[1] == voided {
					word, _ = w.decide.Refund(word, decide.Charge{N: h.N, At: h.At, A: h.State[0]}, now, min(n, h.N), 0)
				}
				charges[forced].N -= min(n, h.N)
			case op == 1:
				a = w.forceArgs(key, algo.Handle{}, n)
				var cut bool
				if word, cut = w.decide.ForceCharge(word, decide.Charge{}, now, n); cut {
					charges = nil // voided
				}
			case op == 2 && rnd.IntN(4) == 0:
				a, word, charges = w.resetArgs(key), 0, nil
			default:
				a = w.acquireArgs(key, n)
			}
			r := remote.NewRequest(script, key, a)
			reply := runScript(t, client, r)
			require.Equal(t, now, reply[0])
			if a[0] == opForce && n > 0 { // which has just been written
				lasts := end.UnixMicro() - now
				if next := w.decide.Reset(0, end.UnixMicro()); word > next {
					lasts = next - now
				}
				longer := client.PTTL(t.Context(), key).Val() - time.Duration(lasts)*time.Microsecond
				require.GreaterOrEqual(t, longer, -time.Second)
				if skew < 0 { // the length of the window after the next is not known
					longer -= spec.Rate.Period / 4
				}
				require.LessOrEqual(t, longer, time.Second)
			}
			if a[0] != opAcquire {
				continue
			}
			d, h := w.explain(remote.Answer{Now: reply[0], Args: a[:], Reply: reply[1:]}, n)
			next, v, quota := w.decide.Answer(word, now, n)
			want := decision(v, quota)
			require.Equal(t, want, d, "%v at %v, skew %d, word %d, reply %v", spec, time.UnixMicro(now), skew, word, reply)
			require.Equal(t, want.Allowed || n > spec.Rate.Count, reply[3]&^remote.FlagMixed == flagAdmitted)
			word, voided = next, h.State[1]
			if d.Allowed && n > 0 {
				charges = append(charges, h)
			}
		}
	}
}

// TestCalendarWindowOfAWrongClock: a clock that is several windows wrong counts in
// windows of its own, and answers sensibly.
func TestCalendarWindowOfAWrongClock(t *testing.T) {
	client, script := redistest.Start(t).Client(), atInstant(t)
	made, err := newFixedWindow(algo.Spec{Algorithm: "fixed-window", Rate: algo.PerDay(5), Zone: "UTC"})
	require.NoError(t, err)
	w := made.(*calendarWindow)
	now := time.Date(2026, 5, 10, 15, 0, 0, 0, time.UTC)
	require.NoError(t, client.MSet(t.Context(), "sec", now.Unix(), "usec", 0).Err())
	for _, wrong := range []time.Duration{-1000 * time.Hour, 1000 * time.Hour} {
		w.clock = func() time.Time { return now.Add(wrong) }
		for i := range int64(6) {
			a := w.acquireArgs("k", 1)
			r := remote.NewRequest(script, fmt.Sprint(wrong), a)
			reply := runScript(t, client, r)
			d, _ := w.explain(remote.Answer{Now: reply[0], Args: a[:], Reply: reply[1:]}, 1)
			require.Equal(t, i < 5, d.Allowed)
			require.Equal(t, max(4-i, 0), d.Remaining)
			require.Equal(t, 9*time.Hour, d.ResetAfter)
		}
	}
}

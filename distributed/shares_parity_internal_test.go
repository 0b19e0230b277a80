package distributed

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestL2_SharesAndDecide: the script and decide agree on every bucket after charges, debts
// and refunds of any child.
func TestL2_SharesAndDecide(t *testing.T) {
	client := redistest.Start(t).Client()
	s, err := New(client, WithTimeout(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	rnd := rand.New(rand.NewPCG(3, 4))
	refunded := 0
	for i, rate := range []algo.Rate{algo.PerSecond(3000), algo.Per(700, time.Minute), algo.Per(9999, 7*time.Second)} {
		floors := map[string]int64{"a": rate.Count / 2, "b": rate.Count / 7}
		shares, err := s.Shares(string(rune('a'+i)), rate, floors, algo.Burst(12))
		require.NoError(t, err)
		children := []*share{shares.Child("a").load().(*share), shares.Child("b").load().(*share), shares.Child("c").load().(*share)}
		m := sharesModel{d: children[0].decide, state: new(decide.SharesState)}
		for range cases.Count(1000, 50_000) {
			if rnd.IntN(100) == 0 {
				time.Sleep(20 * time.Millisecond) // the key may expire
			}
			refunded += m.step(t, rnd, children[rnd.IntN(3)], func(r *remote.Request) []int64 { return runScript(t, client, r) })
		}
	}
	require.Positive(t, refunded)
}

// sharesModel is the buckets of one key as the script should keep them.
type sharesModel struct {
	d      *decide.Shares
	state  *decide.SharesState
	voided int64
	last   algo.Handle // the latest charge, of the child by
	by     *share
}

// step runs one operation on both, and reports 1 for a refund that gave back.
func (m *sharesModel) step(t *testing.T, rnd *rand.Rand, c *share, run func(*remote.Request) []int64) int {
	n := rnd.Int64N(7)
	var a remote.Args
	op := rnd.IntN(10)
	switch {
	case op == 0:
		a = c.forceArgs("k", algo.Handle{}, n)
	case op < 4 && m.by != nil:
		c, n = m.by, min(n, m.last.N)
		a = c.refundArgs(m.last, n)
	default:
		op, a = 9, c.acquireArgs("k", n)
	}
	r := remote.NewRequest(c.compiled, c.compiled.Hash(), a)
	reply := run(r)
	now := reply[0]
	before := m.d.State(0, 0, nil)
	before.Inherit(m.state)
	_, _, _ = c.child.Answer(before, now, 0) // refills
	common, own := before.Lacks()
	require.Equal(t, append([]int64{common}, own...), reply[2:len(reply)-1], "%+v", a)
	if reply[1] != m.voided {
		require.Zero(t, reply[1])
		require.Zero(t, common+slices.Max(own), "a key expires when its buckets are full")
		m.voided = 0
	}
	switch {
	case op == 0:
		if _, cut := c.child.ForceCharge(m.state, decide.Charge{}, now, min(n, 3*c.burst)); cut {
			m.voided++
		}
	case op < 4:
		if m.last.State[2] != m.voided {
			break
		}
		_, given := c.child.Refund(m.state, chargeOf(m.last), now, n, 0)
		m.last.N -= n
		return int(min(given, 1))
	default:
		_, answer, _ := c.child.Answer(m.state, now, n)
		require.Equal(t, answer.Allowed, reply[len(reply)-1] == flagAdmitted)
		if answer.Allowed && n > 0 {
			m.last, m.by = handle(c.child.Charge(m.state, now, n, 0), m.voided), c
		}
	}
	return 0
}

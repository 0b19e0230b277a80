package decide

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// stepwise is Shares as the comment describes them, filled step by step.
type stepwise struct {
	*Shares
	own    []int64 // the units in each child's bucket
	common int64
}

func newStepwise(p *Shares) *stepwise {
	return &stepwise{p, append([]int64(nil), p.depths...), p.common}
}

func (m *stepwise) tick() {
	m.common += m.rest
	for i, f := range m.floors {
		m.own[i] += f
		if over := m.own[i] - m.depths[i]; over > 0 {
			m.own[i] -= over
			m.common += over
		}
	}
	m.common = min(m.common, m.Shares.common)
}

func (m *stepwise) has(child int) int64 { return m.own[child] + max(m.common, 0) }

func (m *stepwise) spend(child int, n int64) bool {
	parts := n * m.period
	if parts > m.has(child) {
		return false
	}
	own := min(parts, m.own[child])
	m.own[child] -= own
	m.common -= parts - own
	return true
}

func randomShares(t *testing.T, rnd *rand.Rand) *Shares {
	for {
		r := perMicro(1+rnd.Int64N(40), time.Duration(20+rnd.Int64N(60))*time.Microsecond)
		floors := make([]int64, 1+rnd.IntN(4))
		for i := range floors {
			floors[i] = rnd.Int64N(r.Count + 1)
		}
		if p, err := NewShares(r, 1+rnd.Int64N(40), floors); err == nil {
			return p
		}
		require.False(t, t.Failed())
	}
}

func perMicro(count int64, period time.Duration) Rate {
	return Rate{Count: count, Period: period, Resolution: Microseconds}
}

// TestW2_SharesAndSteps: over random charges and debts, Shares equals, to the part,
// buckets that are filled step by step, and its spans are exact.
func TestW2_SharesAndSteps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range cases.Count(200, 20_000) {
		p := randomShares(t, rnd)
		m, s, now := newStepwise(p), new(SharesState), int64(1)
		p.refill(s, now)
		for range 20 {
			for range rnd.IntN(30) {
				m.tick()
				now++
			}
			c, n := &Share{p, rnd.IntN(len(p.floors))}, rnd.Int64N(12)
			if rnd.IntN(8) == 0 {
				_, cut := c.ForceCharge(s, Charge{}, now, n)
				own := min(n*p.period, m.own[c.Child])
				m.own[c.Child] -= own
				m.common = max(m.common-(n*p.period-own), -p.common)
				require.Equal(t, cut, s.common == 2*p.common && cut)
				continue
			}
			requireSpans(t, m, c, s, now, n)
			_, a, q := c.Answer(s, now, n)
			require.Equal(t, m.spend(c.Child, n) || n == 0, a.Allowed, "%+v", p)
			require.Equal(t, m.has(c.Child)/p.period, q.Remaining)
			for i := range p.floors {
				require.Equal(t, p.depths[i]-m.own[i], s.own[i])
			}
			require.Equal(t, p.common-m.common, s.common)
		}
	}
}

// requireSpans compares the spans of a peek with the steps that they take.
func requireSpans(t *testing.T, was *stepwise, c *Share, s *SharesState, now, n int64) {
	a, q := c.Peek(s, now, n)
	full := c.Expiry(s, now) - now
	m := stepwise{was.Shares, append([]int64(nil), was.own...), was.common}
	for dt := int64(0); dt <= max(a.RetryAfter, q.NextAfter, q.ResetAfter, full); dt++ {
		require.Equal(t, dt >= a.RetryAfter && !a.Never, n*c.period <= m.has(c.Child) || n == 0)
		require.Equal(t, dt >= q.NextAfter, q.Remaining == q.Limit || m.has(c.Child)/c.period > q.Remaining)
		require.Equal(t, dt >= q.ResetAfter, m.has(c.Child) == c.most(c.Child))
		require.Equal(t, dt >= full, m.full())
		m.tick()
	}
}

func (m *stepwise) full() bool {
	for i, d := range m.depths {
		if m.own[i] < d {
			return false
		}
	}
	return m.common == m.Shares.common
}

// TestW2_SharesBound: whatever children charge and cancel, and however late the readings of
// the clock, the remaining charges in any window are at most the burst plus the units of
// the whole rate.
func TestW2_SharesBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	refunded := 0
	for range cases.Count(1000, 200_000) {
		p := randomShares(t, rnd)
		s, now := new(SharesState), int64(1000)
		var charges []Charge
		var children []int
		var parts []int64 // that stay charged
		for range 60 {
			reading := now - rnd.Int64N(20)*rnd.Int64N(2)
			c, n := &Share{p, rnd.IntN(len(p.floors))}, 1+rnd.Int64N(6)
			if i := len(charges); i > 0 && rnd.IntN(3) == 0 {
				i = rnd.IntN(i)
				n = min(n, charges[i].N)
				_, given := (&Share{p, children[i]}).Refund(s, charges[i], reading, n, 0)
				charges[i].N -= n
				parts[i] -= given
				refunded += int(min(given, 1))
			} else if _, a, _ := c.Answer(s, reading, n); a.Allowed {
				charges, children = append(charges, c.Charge(s, reading, n, 0)), append(children, c.Child)
				parts = append(parts, n*p.period)
			}
			now += rnd.Int64N(40)
		}
		for i := range charges {
			sum := int64(0)
			for j := i; j < len(charges); j++ {
				sum += parts[j]
				require.LessOrEqual(t, sum, p.burst*p.period+p.total()*(charges[j].At-charges[i].At), "%+v", p)
			}
		}
	}
	require.Positive(t, refunded)
}

func TestSharesErrors(t *testing.T) {
	second := perMicro(10, time.Second)
	for want, f := range map[string]func() (*Shares, error){
		"together":       func() (*Shares, error) { return NewShares(second, 10, []int64{6, 5}) },
		"0 or more":      func() (*Shares, error) { return NewShares(second, 10, []int64{-1}) },
		"0 children":     func() (*Shares, error) { return NewShares(second, 10, nil) },
		"burst is 2":     func() (*Shares, error) { return NewShares(second, 2, []int64{5, 5}) },
		"burst is 0":     func() (*Shares, error) { return NewShares(second, 0, []int64{5, 5}) },
		"longer than":    func() (*Shares, error) { return NewShares(perMicro(1, 24*time.Hour), 1000, []int64{0}) },
		"count is 0":     func() (*Shares, error) { return NewShares(perMicro(0, time.Second), 1, []int64{0}) },
		"burst is 99999": func() (*Shares, error) { return NewShares(perMicro(86399, 24*time.Hour), 99999, []int64{1}) },
	} {
		_, err := f()
		require.ErrorContains(t, err, want)
	}
}

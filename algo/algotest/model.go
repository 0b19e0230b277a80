package algotest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// model predicts a limit's answers while no time passes: a counter of the units, or slots, that each
// key has left. Settle upwards may take it below 0.
type model struct {
	t     *testing.T
	l     algo.Limiter
	rnd   *rand.Rand
	keys  []string
	slots bool // in flight: any outcome gives back
	Bound

	limit int64
	left  map[string]int64
	seen  map[string]algo.Decision // the last peek at each key
	held  []admission
}

type admission struct {
	lease algo.Lease
	key   string
	n     int64
	added bool // by Settle
}

const (
	denialCharges = "a denial changed the state: charge only what is admitted"
	denialGives   = "the release of a denied lease gave back units: make the lease of a denial with NewLease, or fill in Allowed before FillLease"
	zeroCharges   = "a cost of 0 changed the state: it is a look"
	peekCharges   = "Peek changed the state: it may charge nothing, count nothing and take no slot"
	peekDiffers   = "Peek has to give the answer of Acquire"
	readClock     = "read the clock in each call, to the nanosecond"
	addsAll       = "Settle upwards has to charge the difference, even if it does not fit, so that the key pays it off before its next admission"
)

var (
	outcomes  = []algo.Outcome{algo.Succeeded, algo.Failed, algo.Canceled, algo.Succeeded | algo.Untimed, algo.Canceled | algo.Untimed}
	modelKeys = []string{"k", "K", "k ", ""}
)

// answers: the answers to random calls on several keys match the model.
func answers(t *testing.T, s subject) {
	rnd := rand.New(rand.NewPCG(11, 12))
	if s.bound.RealTime {
		m := model{t: t, l: s.new(t, algo.PerDay(20)), rnd: rnd, keys: modelKeys, Bound: s.bound}
		m.run(60)
		return
	}
	for trial := range max(Cases(100, 10_000), 2*len(rates)) {
		r := rates[trial%len(rates)]
		m := model{t: t, l: s.new(t, r), rnd: rnd, keys: modelKeys, Bound: s.bound}
		for range rnd.IntN(3) {
			acquire(t, m.l, "k", 1)
			pause(rnd, r)
		}
		m.run(60)
	}
}

// run makes calls: first each kind once, so that its mistake is named, and then random ones.
func (m *model) run(calls int) {
	m.left, m.seen = make(map[string]int64), make(map[string]algo.Decision)
	for _, key := range m.keys {
		m.seen[key] = m.untimed(peek(m.t, m.l, key))
		m.left[key], m.limit = m.seen[key].Remaining, m.seen[key].Limit
	}
	require.Positive(m.t, m.limit, "Limit has to be the most units that fit at once")
	key := m.keys[0]
	m.changed(key, 0, zeroCharges)
	for _, o := range outcomes {
		m.acquire(key, 1)
		m.release(o)
	}
	m.acquire(key, max(m.left[key], 0)+1)
	m.acquire(key, m.limit+1)
	for range calls {
		key := m.keys[m.rnd.IntN(len(m.keys))]
		switch left := max(m.left[key], 0); m.rnd.IntN(6) {
		default:
			m.acquire(key, []int64{0, 1, 1, 2, 3, left, left + 1, m.limit + 1}[m.rnd.IntN(8)])
		case 3:
			m.settle()
		case 4:
			m.release(outcomes[m.rnd.IntN(len(outcomes))])
		case 5:
			m.ended(key)
		}
	}
	for len(m.held) > 0 {
		m.release(algo.Succeeded)
	}
}

// untimed returns d without the fields that are unknown or change as time passes.
func (m *model) untimed(d algo.Decision) algo.Decision {
	if m.RealTime || m.slots {
		d.NextAfter, d.ResetAfter, d.RetryAfter = 0, 0, 0
	}
	return d
}

// changed requires that a call with key changed its remaining units by that many, and nothing of
// another key.
func (m *model) changed(key string, by int64, remedy string, args ...any) {
	m.t.Helper()
	m.left[key] += by
	for _, k := range m.keys {
		now, want := m.untimed(peek(m.t, m.l, k)), max(m.left[k], 0)
		for wait := 0; m.RealTime && now.Remaining != want && wait < 1000; wait++ { // it may come back later
			time.Sleep(time.Millisecond)
			now = m.untimed(peek(m.t, m.l, k))
		}
		switch message := append([]any{remedy}, args...); {
		case k != key:
			require.Equal(m.t, m.seen[k], now, "a call with the key %q changed the key %q: count each key by itself, as it is written", key, k)
		case by == 0:
			require.Equal(m.t, m.seen[k], now, message...)
		case !m.PayForward:
			require.Equal(m.t, want, now.Remaining, message...)
		}
		m.seen[k] = now
	}
}

// acquire peeks and acquires n units.
func (m *model) acquire(key string, n int64) {
	look, err := algo.Peek(ctx, m.l, key, n)
	require.NoError(m.t, err)
	m.changed(key, 0, peekCharges)
	lease := acquire(m.t, m.l, key, n)
	d := lease.Decision
	if !m.PayForward {
		m.judge(d, n, max(m.left[key], 0))
		require.Equal(m.t, d.Allowed, look.Allowed, "n = %d: %s", n, peekDiffers)
	}
	if _, ok := m.l.(algo.Peeker); ok { // of others it is an estimate
		look.Remaining, look.NextAfter, look.ResetAfter = d.Remaining, d.NextAfter, d.ResetAfter // less n, or not
		require.Equal(m.t, m.untimed(d), m.untimed(look), "n = %d: %s", n, peekDiffers)
	}
	m.hold(lease, key, n)
}

// judge compares the answer to n units with what was left before.
func (m *model) judge(d algo.Decision, n, left int64) {
	after, never, timed := left, n > m.limit, !m.slots && !m.RealTime
	if n <= left {
		after -= n
	}
	for _, rule := range []struct {
		kept   bool
		remedy string
	}{
		{d.Limit == m.limit, "Limit has to be the most units that fit at once, in each answer"},
		{!d.Allowed || n <= left, "it admits more than is left: compare n with what is left before the charge"},
		{d.Allowed || n > left, "it denies what fits: admit n units while that many are left, and 0 always"},
		{d.Allowed == (d.Reason == algo.Admitted), "Reason says why a request is denied, and is Admitted otherwise"},
		{never == (d.Reason == algo.Never), "a cost above Limit is denied with the Reason Never, and no other"},
		{never == (d.RetryAfter == algo.Forever), "RetryAfter is Forever with the Reason Never, and only then"},
		{d.Allowed == (d.RetryAfter == 0) && d.RetryAfter >= 0, "RetryAfter is the time until a denied request fits, and 0 if it is admitted"},
		{d.Delay == 0, "Delay is for units that do not fit yet"},
		{d.Remaining == after, "Remaining is what is left after the decision: less n if it is admitted, and never below 0"},
		{!timed || d.NextAfter >= 0 && (d.NextAfter == 0) == (after == m.limit), "NextAfter is the time until one unit more is left, and 0 if nothing is spent"},
		{!timed || d.ResetAfter >= d.NextAfter && (d.ResetAfter == 0) == (after == m.limit), "ResetAfter is the time until nothing is spent: NextAfter or later"},
	} {
		require.True(m.t, rule.kept, "%d units with %d of %d left: %s: %+v", n, left, m.limit, rule.remedy, d)
	}
}

// hold keeps the lease of n units, and requires that they are charged if it was admitted.
func (m *model) hold(lease algo.Lease, key string, n int64) {
	switch {
	case !lease.Allowed:
		m.changed(key, 0, denialCharges)
		lease.Release(algo.Canceled)
		m.changed(key, 0, denialGives)
	case n == 0:
		m.changed(key, 0, zeroCharges)
	default:
		m.changed(key, -n, "an admission of %d units has to charge n units", n)
		m.held = append(m.held, admission{lease, key, n, false})
	}
}

// ended: with an ended context Acquire decides, or returns an error and charges nothing.
func (m *model) ended(key string) {
	over, cancel := context.WithCancel(ctx)
	cancel()
	lease, err := m.l.Acquire(over, key, 1)
	if err == nil {
		m.hold(lease, key, 1)
		return
	}
	m.changed(key, 0, "Acquire in a context that has ended returned an error and kept the charge: %v", err)
}

// inexact reports that a refund may give less back, or more: a log keeps what Settle has added, shares
// give to the child's own bucket while the common one is in debt. Outside of the process it comes later,
// which does not show where Remaining is not compared.
func (m *model) inexact(h *admission) bool {
	return !m.slots && (h.added || m.left[h.key] < 0 || m.RealTime && m.PayForward)
}

// settle corrects the cost of a lease.
func (m *model) settle() {
	if len(m.held) == 0 {
		return
	}
	h := &m.held[m.rnd.IntN(len(m.held))]
	if m.inexact(h) {
		return
	}
	actual := m.rnd.Int64N(2*h.n + 2)
	remedy, more := "Settle downwards has to give the difference back", actual-h.n
	if h.added = more > 0; h.added {
		remedy = addsAll
	}
	h.lease.Settle(actual)
	m.changed(h.key, -more, "from %d to %d units: %s", h.n, actual, remedy)
	h.n = actual
}

// release ends a lease, twice.
func (m *model) release(o algo.Outcome) {
	if len(m.held) == 0 {
		return
	}
	i := m.rnd.IntN(len(m.held))
	h := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	back, remedy := int64(0), "Release(%v) gave back some of %d units: only Canceled does"
	if m.slots || o.Result() == algo.Canceled {
		if m.inexact(&h) {
			return
		}
		back, remedy = h.n, "Release(%v) has to give back the %d units of the handle, once: look at Outcome.Result"
		if m.left[h.key] < 0 {
			remedy += "; or " + addsAll
		}
	}
	h.lease.Release(o)
	h.lease.Release(algo.Canceled)
	h.lease.Settle(2*h.n + 1)
	m.changed(h.key, back, remedy, o, h.n)
}

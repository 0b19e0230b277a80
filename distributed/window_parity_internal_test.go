package distributed

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// windowModel is one key of a window, as its script should keep it.
type windowModel interface {
	// run returns the reply that is due; nil if nothing reads it. got is the
	// server's, for the end of a ban.
	run(t *testing.T, now int64, s windowStep, got []int64) []int64
	limit() limit
}

// windowStep is one operation on a window.
type windowStep struct {
	op, n, long int64
	charge      algo.Handle // of a refund or a forced charge
}

func (s windowStep) args(l limit) remote.Args {
	switch s.op {
	case opRefund:
		return l.refundArgs(s.charge, s.n)
	case opGiveBack:
		return l.(giver).giveBackArgs("k", s.n)
	case opForce:
		return l.forceArgs("k", s.charge, s.n)
	case opReset:
		return l.resetArgs("k")
	case opBan:
		return remote.Args{opBan, s.long}
	}
	return l.acquireArgs("k", s.n)
}

// modelBan is the ban of a key, whose value voided outlives.
type modelBan struct{ until, voided int64 }

// ban notes a ban, which lasts at least as long as the key would have lived; the
// server knows that in milliseconds.
func (b *modelBan) ban(t *testing.T, now, long, got int64) {
	require.GreaterOrEqual(t, got, max(b.until, now+long))
	b.until = got
}

// settle takes voided from the server around the expiry of the key. The server
// keeps time to live in milliseconds of a clock that goes on while the script
// runs: only it knows then whether the key is still there.
func (b *modelBan) settle(now, expiry, got int64) {
	const rounding = 200_000
	if near := expiry - now; -rounding < near && near < rounding {
		b.voided = got
	}
}

// fixedModel decides with [decide.FixedWindow].
type fixedModel struct {
	modelBan
	l          *fixedWindow
	word, ends int64 // ends: of the key
	window     int64 // the end of the window that voided belongs to
}

func (m *fixedModel) limit() limit { return m.l }

func (m *fixedModel) run(t *testing.T, real int64, s windowStep, got []int64) []int64 {
	phase := m.l.shift("k") - m.l.phase // of the key
	now := real + phase
	end := now - (now+m.l.phase)%m.l.period + m.l.period
	if max(m.ends, m.until+phase) <= now {
		m.word = 0
	}
	if m.window != end && m.until <= real {
		m.voided = 0
	}
	switch {
	case s.op == opBan:
		m.ban(t, real, s.long, got[0])
		m.settle(now, m.ends, got[1])
		require.GreaterOrEqual(t, got[1], m.voided)
		m.voided = got[1]
		m.word, m.ends, m.window = 0, 0, 0
		return nil
	case s.op == opReset:
		if m.word > end || m.voided > 0 || m.until > real {
			m.voided++
			m.word, m.until, m.ends, m.window = 0, 0, end, end
		}
		return nil
	case m.until > real:
		if s.op == opGiveBack {
			return []int64{m.until, 0, flagBanned}
		}
		return []int64{m.until, m.voided, flagBanned}
	}
	before, clamped := m.l.decide.Clamp(m.word, now)
	if clamped {
		m.voided++
	}
	reply := []int64{max(before, end) - phase, m.voided, flagDenied}
	m.word = before
	switch s.op {
	case opAcquire:
		next, v, _ := m.l.decide.Answer(before, now, s.n)
		if v.Allowed {
			reply[2] = flagAdmitted
		}
		m.word = next
	case opRefund:
		c := chargeOf(s.charge)
		c.A += phase
		if s.charge.State[1] == m.voided {
			m.word, _ = m.l.decide.Refund(before, c, now, s.n, 0)
		}
	case opGiveBack:
		m.word, reply[1] = m.l.decide.Refund(before, m.l.decide.Charge(0, now, s.n, 0), now, s.n, 0)
	case opForce:
		next, cut := m.l.decide.ForceCharge(before, decide.Charge{}, now, s.n)
		if m.word = next; cut {
			m.voided++
		}
	}
	if m.word != before || clamped || s.op == opForce {
		m.ends, m.window = end, end
		if m.word > end+m.l.period {
			m.ends += m.l.period
		}
	}
	if s.op != opAcquire {
		return nil
	}
	return reply
}

// slidingModel decides with [decide.SlidingCounters].
type slidingModel struct {
	modelBan
	l     *slidingWindow
	state decide.Counters
	dies  int64 // when nothing weighs any more
}

func (m *slidingModel) limit() limit { return m.l }

func (m *slidingModel) run(t *testing.T, now int64, s windowStep, got []int64) []int64 {
	index := now / m.l.period
	if m.dies <= now && m.until <= now {
		m.voided, m.state = 0, decide.Counters{}
	}
	switch {
	case s.op == opBan:
		m.ban(t, now, s.long, got[0])
		m.state = decide.Counters{}
		m.settle(now, m.dies, got[3])
		require.GreaterOrEqual(t, got[3], m.voided)
		m.voided = got[3]
		return nil
	case s.op == opReset:
		m.reset(now, index)
		return nil
	case m.until > now:
		return []int64{m.until, 0, 0, m.voided, flagBanned}
	}
	switch s.op {
	case opAcquire:
		return m.acquire(t, now, s.n, got)
	case opRefund:
		c := chargeOf(s.charge)
		c.B = 1 // the generation of a fresh state
		if s.charge.State[2] == m.voided {
			if _, given := m.l.decide.Refund(&m.state, c, now, s.n, 0); given > 0 {
				m.dies = (index + 2) * m.l.period
			}
		}
	case opForce:
		if _, cut := m.l.decide.ForceCharge(&m.state, decide.Charge{}, now, s.n); cut {
			m.voided++
		}
		m.dies = (index + 2) * m.l.period
	}
	return nil
}

// reset keeps the key until the charges before would have left the window.
func (m *slidingModel) reset(now, index int64) {
	s := m.state
	_, _, left := m.l.decide.Answer(&s, now, 0)
	ends := (index + 1) * m.l.period
	switch {
	case m.until > now:
		m.dies = min(m.until, now+2*m.l.period)
	case now+left.ResetAfter > ends:
		m.dies = ends + m.l.period
	case m.voided > 0:
		m.dies = max(m.dies, ends)
	case left.ResetAfter > 0:
		m.dies = ends
	default:
		return
	}
	m.voided++
	m.state, m.until = decide.Counters{}, 0
}

// acquire compares the server's counts by every decision that they lead to.
func (m *slidingModel) acquire(t *testing.T, now, n int64, got []int64) []int64 {
	server := m.l.decide.State(got[0], got[1], got[2])
	for k := range m.l.maxCost() + 2 {
		mine, theirs := m.state, server
		_, a, q := m.l.decide.Answer(&mine, now, k)
		_, b, r := m.l.decide.Answer(&theirs, now, k)
		require.Equal(t, a, b, "%d units at %d", k, now)
		require.Equal(t, q, r, "%d units at %d", k, now)
	}
	m.settle(now, m.dies, got[3])
	reply := []int64{got[0], got[1], got[2], m.voided, flagDenied}
	if _, v, _ := m.l.decide.Answer(&m.state, now, n); v.Allowed {
		reply[4] = flagAdmitted
		if n > 0 {
			m.dies = (now/m.l.period + 2) * m.l.period
		}
	}
	return reply
}

// unit is one unit of a set.
type unit struct{ id, j, expires int64 }

// unitModel is a set of units as unitset.lua should keep it.
type unitModel struct {
	modelBan
	l     limit
	long  int64 // time to live of a unit
	units []unit
}

func (m *unitModel) limit() limit { return m.l }

func (m *unitModel) run(t *testing.T, now int64, s windowStep, got []int64) []int64 {
	switch {
	case s.op == opBan:
		m.ban(t, now, s.long, got[3])
		m.units = nil
		return nil
	case s.op == opReset:
		m.units, m.until = nil, 0
		return nil
	case m.until > now:
		return []int64{0, 0, 0, m.until, flagBanned}
	}
	m.units = slices.DeleteFunc(m.units, func(u unit) bool { return u.expires <= now })
	id := s.charge.State[0]
	switch s.op {
	case opRefund:
		n := s.n
		slices.SortStableFunc(m.units, func(a, b unit) int { return cmp.Compare(b.j, a.j) })
		m.units = slices.DeleteFunc(m.units, func(u unit) bool {
			gone := u.id == id && u.j < s.charge.N && n > 0
			if gone {
				n--
			}
			return gone
		})
		return nil
	case opForce:
		m.force(now, s)
		return nil
	}
	return m.acquire(now, s)
}

// force adds n units, at most one more than the quota.
func (m *unitModel) force(now int64, s windowStep) {
	for j := range min(s.n, m.l.maxCost()+1) {
		m.units = append(m.units, unit{s.charge.State[0], s.charge.N + j, now + m.long})
	}
}

func (m *unitModel) acquire(now int64, s windowStep) []int64 {
	count, most := int64(len(m.units)), m.l.maxCost()
	reply := []int64{count, 0, 0, m.nth(count - 1), flagDenied}
	if count+s.n <= most {
		reply[4] = flagAdmitted
		for j := range s.n {
			m.units = append(m.units, unit{s.charge.State[0], j, now + m.long})
		}
	} else {
		reply[2] = m.nth(count + s.n - most - 1)
	}
	reply[1] = m.nth(max(int64(len(m.units))-most, 0))
	return reply
}

// nth is when the nth unit to leave expires.
func (m *unitModel) nth(n int64) int64 {
	if n < 0 || n >= int64(len(m.units)) {
		return 0
	}
	at := make([]int64, len(m.units))
	for i, u := range m.units {
		at[i] = u.expires
	}
	slices.Sort(at)
	return at[n]
}

// windowKeys makes a key for each of several periods, and phases.
func windowKeys(t *testing.T, make func(algo.Spec) (limit, error), model func(limit) windowModel, algorithm string) (keys []windowModel) {
	for i, period := range []time.Duration{300 * time.Microsecond, 2 * time.Millisecond, 50 * time.Millisecond, time.Second, time.Hour} {
		for k := range 2 {
			s := algo.Spec{Algorithm: algorithm, Rate: algo.Per(5+int64(i), period)}
			if algorithm == "fixed-window" {
				s.Offset, s.Spread = time.Duration(k)*7*time.Hour/10, i%2 == 0
			}
			l, err := make(s)
			require.NoError(t, err)
			keys = append(keys, model(l))
		}
	}
	return keys
}

// TestL2_WindowScriptsAndDecide: script and decide agree on every reply that is
// read, for windows as for buckets; the sliding log and in-flight limits agree
// with a model.
func TestL2_WindowScriptsAndDecide(t *testing.T) {
	for name, keys := range map[string][]windowModel{
		"fixed window": windowKeys(t, newFixedWindow, func(l limit) windowModel { return &fixedModel{l: l.(*fixedWindow)} }, "fixed-window"),
		"sliding window": windowKeys(t, newSlidingWindow, func(l limit) windowModel { return &slidingModel{l: l.(*slidingWindow)} },
			"sliding-window"),
		"sliding log": windowKeys(t, newSlidingLog, func(l limit) windowModel {
			log := l.(*slidingLog)
			return &unitModel{l: l, long: log.period}
		}, "sliding-log"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &windowParity{keys: keys, charges: make([][]algo.Handle, len(keys)), rnd: rand.New(rand.NewPCG(3, 4))}
			client := redistest.Start(t).Client()
			for done := 0; done < cases.Count(5_000, 200_000); done += len(w.steps) {
				reqs := w.batch(50)
				reply := runScript(t, client, reqs...)
				for i := range w.steps {
					w.check(t, i, reply)
				}
			}
			t.Logf("L2: %d operations agree, %d of them refunds", cases.Count(5_000, 200_000), w.refunds)
			requireEveryKeyExpires(t, client)
		})
	}
}

// windowParity runs random operations on the keys of a window.
type windowParity struct {
	keys    []windowModel
	charges [][]algo.Handle // that can be refunded, by key
	rnd     *rand.Rand
	steps   []windowStep
	of      []int // the key of each step
	sent    []remote.Args
	refunds int
}

func (w *windowParity) batch(n int) (reqs []*remote.Request) {
	w.steps, w.of, w.sent = w.steps[:0], w.of[:0], w.sent[:0]
	for range n {
		k := w.rnd.IntN(len(w.keys))
		s := windowStep{n: w.rnd.Int64N(4)}
		charge := new(algo.Handle)
		if n := len(w.charges[k]); n > 0 {
			charge = &w.charges[k][w.rnd.IntN(n)]
		}
		s.charge = *charge
		switch w.rnd.IntN(40) {
		case 0:
			s.op = opReset
		case 1:
			s.op, s.long = opBan, 1+w.rnd.Int64N(2000)
		case 2, 3:
			s.op, s.n = opForce, 1+w.rnd.Int64N(12)
			s.charge = algo.Handle{State: [3]int64{newID()}}
		case 4, 5, 6, 7, 8, 9:
			if s.charge.N > 0 {
				s.op, s.n = opRefund, min(s.n, s.charge.N)
				charge.N -= s.n // as a lease keeps it
				w.refunds++
			}
		case 10, 11:
			if _, ok := w.keys[k].limit().(giver); ok {
				s.op, s.n = opGiveBack, 1+w.rnd.Int64N(12)
			}
		}
		l := w.keys[k].limit()
		a := s.args(l)
		if s.op == opAcquire {
			s.charge = algo.Handle{State: [3]int64{a[4]}} // the id of the units
		}
		w.steps, w.of, w.sent = append(w.steps, s), append(w.of, k), append(w.sent, a)
		reqs = append(reqs, remote.NewRequest(l.script(), "k"+strconv.Itoa(k), a))
	}
	return reqs
}

// check compares the i-th reply, and remembers its charge.
func (w *windowParity) check(t *testing.T, i int, reply []int64) {
	t.Helper()
	k, s := w.of[i], w.steps[i]
	m := w.keys[k]
	n := m.limit().script().Replies
	got := reply[1+i*n:][:n]
	if want := m.run(t, reply[0], s, got); want != nil {
		require.Equal(t, want, got, "%+v on %+v at %d", s, m, reply[0])
	}
	if s.op == opAcquire && s.n > 0 && got[n-1] == flagAdmitted {
		_, h := m.limit().explain(remote.Answer{Now: reply[0], Args: w.sent[i][:], Reply: got}, s.n)
		w.charges[k] = append(w.charges[k], h)
		if len(w.charges[k]) > 5 {
			w.charges[k] = w.charges[k][1:]
		}
	}
}

package distributed

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
	"github.com/sluice-go/sluice/internal/redistest"
)

// windowModel is one key of a window, as its script should keep it.
type windowModel interface {
	// run returns the reply that is due.
	run(now int64, a args) []int64
}

type blocking struct{ ends int64 }

// blocked handles what all scripts have in common; done: reply is due.
func (b *blocking) active(now int64) bool { return b.ends > now }

type fixedModel struct {
	blocking
	ends, count int64
}

func (m *fixedModel) run(now int64, a args) []int64 {
	op, x, y, z := a[0], a[1], a[2], a[3]
	if m.ends <= now {
		m.ends, m.count = 0, 0
	}
	ends, before, flag := m.ends, m.count, int64(0)
	if m.active(now) {
		ends, before, flag = m.blocking.ends, 0, flagBlocked
		if op < opReset {
			return []int64{ends, 0, 0, flag}
		}
	}
	var admitted int64
	switch op {
	case opAcquire, opOwe:
		if ends == 0 || ends > now+x {
			ends = now + x
		}
		if op == opOwe {
			m.count = min(m.count+z, y)
		} else if m.count+z <= y {
			m.count, admitted = m.count+z, 1
		}
		if m.count > before {
			m.ends = ends
		}
	case opRefund:
		if ends == y {
			m.count = max(m.count-x, 0)
		}
	case opReset:
		*m = fixedModel{}
	case opBlock:
		ends = max(ends, now+x)
		*m = fixedModel{blocking: blocking{ends}}
	}
	return []int64{ends, before, admitted, flag}
}

type slidingModel struct {
	blocking
	index, prev, curr int64
}

func (m *slidingModel) run(now int64, a args) []int64 {
	op, x, y, z := a[0], a[1], a[2], a[3]
	if m.active(now) && op != opReset && op != opBlock {
		return []int64{m.ends, 0, 0, 0, flagBlocked}
	}
	switch op {
	case opReset, opBlock:
		ends := int64(0)
		if op == opBlock {
			ends = max(m.ends, now+x)
		}
		*m = slidingModel{blocking: blocking{ends}}
		return nil // what a window replies to these is not read
	}
	switch index := now / x; {
	case m.index == index-1:
		m.index, m.prev, m.curr = index, m.curr, 0
	case m.index < index-1:
		m.index, m.prev, m.curr = index, 0, 0
	}
	before, admitted := m.curr, int64(0)
	switch op {
	case opAcquire:
		w := &sliding{limit: y, length: x}
		if w.weight(m.prev, now-m.index*x)+m.curr+z <= y {
			m.curr += z
			admitted = 1
		}
	case opRefund:
		switch y {
		case m.index:
			m.curr = max(m.curr-z, 0)
		case m.index - 1:
			m.prev = max(m.prev-z, 0)
		}
	case opOwe:
		m.curr = min(m.curr+z, y)
	}
	return []int64{m.index, m.prev, before, admitted, 0}
}

// unit is one unit that is held.
type unit struct{ id, j, expires int64 }

type heldModel struct {
	blocking
	units []unit
}

func (m *heldModel) run(now int64, a args) []int64 {
	op, x, y, z, id, from := a[0], a[1], a[2], a[3], a[4], a[5]
	if m.active(now) && op != opReset && op != opBlock {
		return []int64{0, 0, 0, m.ends, 0, flagBlocked}
	}
	m.units = keep(m.units, func(u unit) bool { return u.expires > now })
	count := int64(len(m.units))
	nth := func(n int64) int64 {
		if n < 0 || n >= int64(len(m.units)) {
			return 0
		}
		return sorted(m.units)[n]
	}
	last := nth(count - 1)
	var next, soon, admitted int64
	switch op {
	case opAcquire:
		if count+z <= y {
			admitted = 1
			for j := range z {
				m.units = append(m.units, unit{id, j, now + x})
			}
		} else {
			soon = nth(count + z - y - 1)
		}
		next = nth(max(int64(len(m.units))-y, 0))
	case opRefund:
		m.units = keep(m.units, func(u unit) bool { return u.id != id || u.j < from || u.j >= from+z })
	case opReset:
		*m = heldModel{}
		return nil
	case opBlock:
		*m = heldModel{blocking: blocking{max(m.ends, last, now+x)}}
		return nil
	case opRenew:
		for i := range m.units {
			if m.units[i].id == id && m.units[i].j < z {
				m.units[i].expires = now + x
			}
		}
		last = nth(int64(len(m.units)) - 1)
	}
	return []int64{count, next, soon, last, admitted, 0}
}

func keep(units []unit, ok func(unit) bool) (out []unit) {
	for _, u := range units {
		if ok(u) {
			out = append(out, u)
		}
	}
	return out
}

func sorted(units []unit) (at []int64) {
	for _, u := range units {
		at = append(at, u.expires)
	}
	for i := range at {
		for j := i; j > 0 && at[j] < at[j-1]; j-- {
			at[j], at[j-1] = at[j-1], at[j]
		}
	}
	return at
}

// L2 for the windows and what is held: script and model agree on every reply.
func TestParityOfWindowScripts(t *testing.T) {
	// Each key has one length for good, as a limit has.
	lengths := []int64{300, 2_000, 50_000, 3_600_000_000}
	length := func(key int) int64 { return lengths[key%len(lengths)] }
	const limit = 7
	ids := []int64{11, 12, 13, 14, 15, 16, 17, 18, 19}
	for _, tc := range []struct {
		script *script
		model  func() windowModel
		step   func(rnd *rand.Rand, key int, seen int64) args
	}{
		{fixedScript, func() windowModel { return new(fixedModel) }, func(rnd *rand.Rand, key int, seen int64) args {
			switch rnd.IntN(10) {
			case 0:
				return args{opRefund, rnd.Int64N(4), seen}
			case 1:
				return args{opOwe, length(key), 2 * limit, rnd.Int64N(4)}
			}
			return args{opAcquire, length(key), limit, rnd.Int64N(4)}
		}},
		{slidingScript, func() windowModel { return new(slidingModel) }, func(rnd *rand.Rand, key int, seen int64) args {
			switch rnd.IntN(10) {
			case 0:
				return args{opRefund, length(key), seen, rnd.Int64N(4)}
			case 1:
				return args{opOwe, length(key), limit, rnd.Int64N(4)}
			}
			return args{opAcquire, length(key), limit, rnd.Int64N(4)}
		}},
		{heldScript, func() windowModel { return new(heldModel) }, func(rnd *rand.Rand, key int, seen int64) args {
			id := ids[rnd.IntN(len(ids))]
			switch rnd.IntN(10) {
			case 0, 1:
				return args{opRefund, 0, 0, rnd.Int64N(3), id, rnd.Int64N(3)}
			case 2:
				return args{opRenew, length(key), 0, rnd.Int64N(4), id}
			}
			return args{opAcquire, length(key), limit, rnd.Int64N(4), seen<<20 + rnd.Int64N(1<<20)}
		}},
	} {
		t.Run(tc.script.name, func(t *testing.T) {
			t.Parallel()
			client := redistest.Start(t).Client()
			rnd := rand.New(rand.NewPCG(3, 4))
			models := map[int]windowModel{}
			seen := map[int]int64{}
			const batch = 50
			for done := 0; done < cases.Count(5_000, 200_000); done += batch {
				var batched []args
				var keys []int
				var asked []*entry
				for range batch {
					key := rnd.IntN(12)
					a := tc.step(rnd, key, seen[key])
					switch rnd.IntN(40) {
					case 0:
						a = args{opReset}
					case 1:
						a = args{opBlock, 1 + rnd.Int64N(2000)}
					}
					keys, batched = append(keys, key), append(batched, a)
					asked = append(asked, ask(tc.script, "k"+strconv.Itoa(key), a))
				}
				cmds := pack(t.Context(), asked, true)
				send(t.Context(), client, cmds)
				reply, err := cmds[0].Result()
				require.NoError(t, err)
				for i, a := range batched {
					m := models[keys[i]]
					if m == nil {
						m = tc.model()
						models[keys[i]] = m
					}
					got := reply[1+i*tc.script.replies:][:tc.script.replies]
					if want := m.run(reply[0], a); want != nil {
						require.Equal(t, want, got, "operation %d: %v at %d", done+i, a, reply[0])
					}
					if w, ok := m.(*slidingModel); ok && a[0] == opBlock {
						// It lasts at least as long as the key would have lived,
						// which the server knows in milliseconds.
						require.GreaterOrEqual(t, got[0], w.ends)
						w.ends = got[0]
					}
					seen[keys[i]] = got[0]
				}
			}
			t.Logf("L2: %d operations agree", cases.Count(5_000, 200_000))
			requireEveryKeyExpires(t, client)
		})
	}
}

// until is the closed form of what trying instant by instant finds.
func TestSlidingRetryAfterIsExact(t *testing.T) {
	for range cases.Count(20_000, 1_000_000) {
		w := &sliding{limit: 1 + rand.Int64N(9), length: 1 + rand.Int64N(60)}
		prev, curr := rand.Int64N(w.limit+2), rand.Int64N(w.limit+2)
		elapsed, n := rand.Int64N(w.length), 1+rand.Int64N(w.limit)
		fits := func(after int64) bool {
			p, c, e := prev, curr, elapsed+after
			for e >= w.length {
				p, c, e = c, 0, e-w.length
			}
			return w.weight(p, e)+c+n <= w.limit
		}
		want := int64(0)
		for !fits(want) {
			want++
		}
		require.Equal(t, want, w.until(prev, curr, elapsed, n), "%+v prev %d curr %d elapsed %d n %d", *w, prev, curr, elapsed, n)
	}
}

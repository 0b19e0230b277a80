package decide

import "math/bits"

// FixedWindow admits a quota in each of consecutive windows. The state is one word: the end of the
// window, plus one step for each unit. No window holds more units than steps, so the sum stays
// within the next window. A word at or before the end of the current window means the same as none,
// and one in the past can be evicted.
//
// The word of a full window with debt is the end of the next window plus the rest. So debt carries
// over by itself, and a late reading of the clock can only under-admit.
//
// The bits of a word below a step number its period. So words may be of several periods, and
// [FixedWindow.Succeed] touches none of them. With steps of one tick there are no such bits.
//
// With spread the windows of a key begin [FixedWindow.Phase] earlier: callers add it to every
// instant.
//
// The windows of a [Calendar] differ in length. A full window in debt has then spent the length of
// the next window.
type FixedWindow struct {
	quota      int64
	unit       int64 // ticks of a step
	shift      uint8 // unit is 2^shift
	spread     bool
	depth      int64 // quota*unit, at most the window
	full       int64 // most that a window without debt holds: depth, or more under an earlier quota
	phase      int64 // added to an instant before it is divided, 0 to window-1
	window     divisor
	calendar   *periods     // provides the windows in place of phase and window, or nil
	wall       *wallClock   // moves the windows of the calendar, or nil
	ahead      int64        // added to an instant, like phase: the wall clock's steps within a window
	generation int64        // the tag of words counted under this period
	before     *FixedWindow // the limit before the last change of the period, or nil
}

// NewFixedWindow validates; the error names field and value. reference is an
// instant at which a window begins.
func NewFixedWindow(r Rate, reference int64, spread bool) (*FixedWindow, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	f := &FixedWindow{quota: r.Count, unit: r.stepTicks(), shift: r.shift, spread: spread}
	window := r.Ticks(r.Period)
	f.depth = f.quota * f.unit
	f.full = f.depth
	f.window = newDivisor(window)
	f.phase = (window - (reference%window+window)%window) % window &^ (f.unit - 1)
	return f, nil
}

// Limit returns the quota.
func (f *FixedWindow) Limit() int64 { return f.quota }

// Phase returns how much earlier a key's windows begin, by its hash: one of 1024 values, so that
// resets disclose no more of the hash. The hash 0 has none.
func (f *FixedWindow) Phase(hash uint64) int64 {
	if !f.spread {
		return 0
	}
	const top = 1023 << 54
	hi, _ := bits.Mul64(hash*0xd6e8feb86659fd93&top, uint64(f.window.by))
	return int64(hi) &^ (f.unit - 1)
}

// end returns the end of the window that holds now.
func (f *FixedWindow) end(now int64) int64 {
	end, _ := f.ends(now)
	return end
}

// ends returns the end of the window that holds now and the length of the next one.
func (f *FixedWindow) ends(now int64) (end, by int64) {
	if f.calendar != nil {
		w := f.calendar.frame(now)
		return w.end, w.by
	}
	return f.regular(now) + f.window.by, f.window.by
}

// floor returns the last instant up to now at which a window begins.
func (f *FixedWindow) floor(now int64) int64 {
	if f.calendar != nil {
		return f.calendar.frame(now).begin
	}
	return f.regular(now)
}

// regular is floor for windows of one length.
func (f *FixedWindow) regular(now int64) int64 {
	x := now + f.phase
	return now - (x - f.window.quo(x)*f.window.by)
}

// word returns the state of a window that ends at end, with spent ticks spent.
func (f *FixedWindow) word(end, spent int64) int64 {
	return addSaturated(end, spent)&^(f.unit-1) | f.generation
}

// Answer charges n units if they fit into the current window.
func (f *FixedWindow) Answer(word, now, n int64) (int64, Answer, Quota) {
	f, now = f.in(now)
	end, by := f.ends(now)
	spent := f.spent(word, now, end, by)
	next, over := f.charge(word, end, spent, n)
	a := f.answer(now, end, by, spent, n, over)
	if over <= 0 {
		spent += n * f.unit
	}
	return next, a, f.quotaOf(now, end, by, spent)
}

// Peek is Answer without the charge.
func (f *FixedWindow) Peek(word, now, n int64) (Answer, Quota) {
	f, now = f.in(now)
	end, by := f.ends(now)
	spent := f.spent(word, now, end, by)
	_, over := f.charge(word, end, spent, n)
	return f.answer(now, end, by, spent, n, over), f.quotaOf(now, end, by, spent)
}

// answer turns the overshoot of a charge into an Answer; spent are the units spent before.
func (f *FixedWindow) answer(now, end, by, spent, n, over int64) Answer {
	switch {
	case over <= 0 || n == 0:
		return Answer{Allowed: true}
	case over == never:
		return Answer{Never: true}
	}
	return Answer{RetryAfter: f.until(end, by, spent, n) - now}
}

// quotaOf describes the rest, at now, of a window with spent ticks spent.
func (f *FixedWindow) quotaOf(now, end, by, spent int64) Quota {
	left := f.units(max(f.depth-spent, 0))
	q := Quota{Limit: f.quota, Remaining: left}
	if spent > 0 {
		q.ResetAfter = f.until(end, by, spent, f.quota) - now
	}
	if left < f.quota {
		q.NextAfter = f.until(end, by, spent, left+1) - now
	}
	return q
}

// Admit charges n units if they fit into the current window.
func (f *FixedWindow) Admit(word, now, n int64) (int64, bool) {
	f, now = f.in(now)
	end, by := f.ends(now)
	next, over := f.charge(word, end, f.spent(word, now, end, by), n)
	return next, over <= 0 || n == 0
}

// charge returns the next word and how far the charge overshoots the quota: up to 0 it fits;
// beyond, it is denied and the word stays.
func (f *FixedWindow) charge(word, end, spent, n int64) (next, over int64) {
	if n > f.quota {
		return word, never
	}
	spent += n * f.unit
	over = spent - f.depth
	if over > 0 || n == 0 {
		return word, over
	}
	if next = end + spent; next < 0 {
		return word, never // past the end of the clock
	}
	return next | f.generation, over
}

// spent returns the spent ticks of word's current window: its count, or the length of the next
// window and its debt, at most one quota.
func (f *FixedWindow) spent(word, now, end, by int64) int64 {
	if f.tag(word) != f.generation {
		return f.carried(word, now)
	}
	return min(max(word-f.generation-end, 0), by+f.depth)
}

// until returns the instant from which n units fit: the end of the window, or of the next one if
// that is in debt.
func (f *FixedWindow) until(end, by, spent, n int64) int64 {
	if debt := spent - by; debt > 0 && debt+n*f.unit > f.depth {
		end += by
	}
	return end
}

// units returns x / f.unit for x >= 0.
func (f *FixedWindow) units(x int64) int64 { return x >> f.shift }

// Charge describes a charge of n units at now.
func (f *FixedWindow) Charge(_, now, n, _ int64) Charge {
	f, now = f.in(now)
	return Charge{N: n, At: now, A: f.word(f.end(now), 0)}
}

// MaxRefund returns 0: windows do not move.
func (f *FixedWindow) MaxRefund(Charge, int64) int64 { return 0 }

// Refund gives n units of c back while their window lasts: later they could be spent twice. It
// reduces the debt of the next window first. The second result is in units. now must be read after
// word.
func (f *FixedWindow) Refund(word int64, c Charge, now, n, _ int64) (int64, int64) {
	f, now = f.in(now)
	end, by := f.ends(now)
	if f.word(end, 0) != c.A || f.tag(word) != f.generation {
		return word, 0
	}
	spent := f.spent(word, now, end, by)
	cost := min(n, 2*f.units(by)) * f.unit
	given := min(cost, spent)
	left := spent - given
	if debt := spent - by; debt >= 0 && cost >= debt {
		given = debt + min(cost-debt, f.full)
		left = f.full - (given - debt)
	}
	return f.word(end, left), f.units(given)
}

// ForceCharge charges n units more. Units that do not fit are debt in the next
// window, up to one quota.
func (f *FixedWindow) ForceCharge(word int64, _ Charge, now, n int64) (int64, bool) {
	f, now = f.in(now)
	end, by := f.ends(now)
	spent := f.spent(word, now, end, by)
	cost := min(n, 2*f.quota+1) * f.unit
	if spent < by && spent+cost > f.depth {
		cost -= max(f.depth-spent, 0)
		spent = by
	}
	most := by + f.depth
	return f.word(end, min(spent+cost, most)), spent+cost > most
}

// Plausible reports whether word was counted under this period, in a window that
// has begun by now. Debt looks implausible too, and [FixedWindow.Clamp] leaves
// it.
func (f *FixedWindow) Plausible(word, now int64) bool {
	f, now = f.in(now)
	if f.tag(word) != f.generation {
		return f.carried(word, now) == 0
	}
	end, by := f.ends(now)
	return word-f.generation-end < by
}

// Clamp rewrites a word of an earlier period for this one, and cuts what exceeds the current window
// by more than a quota.
func (f *FixedWindow) Clamp(word, now int64) (int64, bool) {
	f, now = f.in(now)
	end, by := f.ends(now)
	if f.tag(word) != f.generation {
		if spent := f.carried(word, now); spent > 0 {
			word = f.word(end, spent)
		}
		return word, false
	}
	if word-f.generation-end <= by+f.depth {
		return word, false
	}
	return f.word(end, by+f.depth), true
}

// Reset returns the word of an unspent window.
func (f *FixedWindow) Reset(_, now int64) int64 {
	f, now = f.in(now)
	return f.word(f.end(now), 0)
}

// Unspent returns a bound above every word without spent units in the window of now.
func (f *FixedWindow) Unspent(now int64) int64 {
	f, now = f.in(now)
	return f.end(now) + f.unit
}

// Expiry returns the word itself.
func (f *FixedWindow) Expiry(word, _ int64) int64 { return word }

package decide

import "math/bits"

// FixedWindow admits a quota in each of consecutive windows. The state is one
// word: the end of the window, plus one step for each unit. No window holds
// more units than steps, so the sum stays within the next window. A word at or
// before the end of the current window means the same as none, and one in the
// past can be evicted.
//
// A full window that owes more is the end of the next one plus the rest. So debt
// carries over by itself, and a late reading of the clock can only under-admit.
//
// The bits of a word below a step number the period that it was counted under.
// So words may be of several periods, and [FixedWindow.Succeed] touches none of
// them. Where a step is one tick, there are no such bits.
//
// With spread the windows of a key begin [FixedWindow.Phase] earlier: callers
// add it to every instant.
type FixedWindow struct {
	quota      int64
	unit       int64 // ticks of a step
	shift      uint8 // unit is 2^shift
	depth      int64 // quota*unit, at most the window
	full       int64 // most that a window without debt holds: depth, or more under an earlier quota
	maxDebt    int64 // largest plausible count*unit: the window and one quota more
	phase      int64 // added to an instant before it is divided, 0 to window-1
	spread     bool
	window     divisor
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
	f.maxDebt = window + f.depth
	f.window = newDivisor(window)
	f.phase = (window - (reference%window+window)%window) % window &^ (f.unit - 1)
	return f, nil
}

// Succeed returns f as the limit that replaces old: units that were spent in the
// current window of a key stay spent, under another period in the window that is
// current when the key is next used.
func (f *FixedWindow) Succeed(old *FixedWindow) *FixedWindow {
	next := *f
	if old.window == f.window && old.phase == f.phase && old.spread == f.spread {
		next.generation, next.before = old.generation, old.before
		next.full = max(f.full, old.full)
		return &next
	}
	next.generation = (old.generation + 1) & (f.unit - 1)
	if next.generation != 0 { // else the numbers are used up, and earlier counts are lost
		next.before = old
	}
	return &next
}

// Limit is the quota.
func (f *FixedWindow) Limit() int64 { return f.quota }

// Phase is how much earlier the windows of one key begin, by its hash: one of
// 1024 values, so that the resets of a key disclose no more of its hash. The
// hash 0 has none.
func (f *FixedWindow) Phase(hash uint64) int64 {
	if !f.spread {
		return 0
	}
	const top = 1023 << 54
	hi, _ := bits.Mul64(hash*0xd6e8feb86659fd93&top, uint64(f.window.by))
	return int64(hi) &^ (f.unit - 1)
}

// end is the end of the window that holds now.
func (f *FixedWindow) end(now int64) int64 { return f.floor(now) + f.window.by }

// floor is the last instant up to now at which a window begins.
func (f *FixedWindow) floor(now int64) int64 {
	x := now + f.phase
	return now - (x - f.window.quo(x)*f.window.by)
}

// word is the state of a window that ends at end, and of which spent ticks are
// spent.
func (f *FixedWindow) word(end, spent int64) int64 {
	return addSaturated(end, spent)&^(f.unit-1) | f.generation
}

// tag returns the bits of word that number its period.
func (f *FixedWindow) tag(word int64) int64 { return word & (f.unit - 1) }

// Decide charges n units if they fit into the current window.
func (f *FixedWindow) Decide(word, now, n int64) (int64, Verdict) {
	next, a, q := f.Answer(word, now, n)
	return next, Verdict{a, q}
}

// Answer is Decide.
func (f *FixedWindow) Answer(word, now, n int64) (int64, Answer, Quota) {
	end := f.end(now)
	spent := f.spent(word, now, end)
	next, over := f.charge(word, end, spent, n)
	a := f.answer(now, end, spent, n, over)
	if over <= 0 {
		spent += n * f.unit
	}
	return next, a, f.quotaOf(now, end, spent)
}

// Peek is Decide without the charge.
func (f *FixedWindow) Peek(word, now, n int64) (Answer, Quota) {
	end := f.end(now)
	spent := f.spent(word, now, end)
	_, over := f.charge(word, end, spent, n)
	return f.answer(now, end, spent, n, over), f.quotaOf(now, end, spent)
}

// answer turns the overshoot of a charge into an Answer. spent is what was spent
// before.
func (f *FixedWindow) answer(now, end, spent, n, over int64) Answer {
	switch {
	case over <= 0 || n == 0:
		return Answer{Allowed: true}
	case over == never:
		return Answer{Never: true}
	}
	return Answer{RetryAfter: f.until(end, spent, n) - now}
}

// quotaOf describes what is left at now of a window of which spent is spent.
func (f *FixedWindow) quotaOf(now, end, spent int64) Quota {
	left := f.units(max(f.depth-spent, 0))
	q := Quota{Limit: f.quota, Remaining: left}
	if spent > 0 {
		q.ResetAfter = f.until(end, spent, f.quota) - now
	}
	if left < f.quota {
		q.NextAfter = f.until(end, spent, left+1) - now
	}
	return q
}

// Admit charges n units if they fit into the current window.
func (f *FixedWindow) Admit(word, now, n int64) (int64, bool) {
	end := f.end(now)
	next, over := f.charge(word, end, f.spent(word, now, end), n)
	return next, over <= 0 || n == 0
}

// charge returns the next word and how far the charge overshoots the quota: up
// to 0 it fits, beyond it is denied and the word stays.
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

// spent is how much of the current window word has spent, in ticks: its count,
// or the whole window and the debt of the next one.
func (f *FixedWindow) spent(word, now, end int64) int64 {
	if f.tag(word) != f.generation {
		return f.carried(word, now)
	}
	return min(max(word-f.generation-end, 0), f.maxDebt)
}

// carried is how much of the current window a word has spent that was counted
// under an earlier period: its count, at most the quota, unless that window has
// ended. Where windows are spread, the word is ahead by another phase than now,
// and may count for up to one window longer.
func (f *FixedWindow) carried(word, now int64) int64 {
	tag := f.tag(word)
	old := f.before
	for old != nil && old.generation != tag {
		old = old.before
	}
	if old == nil {
		return 0 // long ended
	}
	end := old.floor(word - tag)
	spent, still := word-tag-end, end
	if f.spread {
		still = addSaturated(end, f.window.by)
	} else if end-old.window.by > now {
		return f.depth // full, and in debt
	}
	if still <= now {
		return 0
	}
	return min(spent, f.depth)
}

// until is the instant from which n units fit: the end of the window, or of the
// next one when that is in debt.
func (f *FixedWindow) until(end, spent, n int64) int64 {
	if debt := spent - f.window.by; debt > 0 && debt+n*f.unit > f.depth {
		end += f.window.by
	}
	return end
}

// units is x / f.unit for x >= 0.
func (f *FixedWindow) units(x int64) int64 { return x >> f.shift }

// Charge describes a charge of n units at now.
func (f *FixedWindow) Charge(_, now, n, _ int64) Charge {
	return Charge{N: n, At: now, A: f.word(f.end(now), 0)}
}

// MaxRefund is 0: windows do not move.
func (f *FixedWindow) MaxRefund(Charge, int64) int64 { return 0 }

// Refund gives n units of c back while their window lasts: later they could be
// spent twice. It takes them from the debt of the next window first. The second
// result is in ticks. The reading now must be taken after word was read.
func (f *FixedWindow) Refund(word int64, c Charge, now, n, _ int64) (int64, int64) {
	end := f.end(now)
	if f.word(end, 0) != c.A || f.tag(word) != f.generation {
		return word, 0
	}
	spent := f.spent(word, now, end)
	cost := min(n, 2*f.units(f.window.by)) * f.unit
	given := min(cost, spent)
	left := spent - given
	if debt := spent - f.window.by; debt >= 0 && cost >= debt {
		given = debt + min(cost-debt, f.full)
		left = f.full - (given - debt)
	}
	return f.word(end, left), given
}

// ForceCharge charges n units more. What does not fit is owed in the next
// window, up to one quota.
func (f *FixedWindow) ForceCharge(word int64, _ Charge, now, n int64) (int64, bool) {
	end := f.end(now)
	spent := f.spent(word, now, end)
	cost := min(n, 2*f.quota+1) * f.unit
	if spent < f.window.by && spent+cost > f.depth {
		cost -= max(f.depth-spent, 0)
		spent = f.window.by
	}
	return f.word(end, min(spent+cost, f.maxDebt)), spent+cost > f.maxDebt
}

// Plausible reports whether word was counted under this period, in a window that
// has begun by now. Debt looks implausible too, and [FixedWindow.Clamp] leaves
// it.
func (f *FixedWindow) Plausible(word, now int64) bool {
	if f.tag(word) != f.generation {
		return f.carried(word, now) == 0
	}
	return word-f.generation-f.end(now) < f.window.by
}

// Clamp rewrites a word of an earlier period as one of this, and cuts what is
// more than a quota beyond the current window.
func (f *FixedWindow) Clamp(word, now int64) (int64, bool) {
	end := f.end(now)
	if f.tag(word) != f.generation {
		if spent := f.carried(word, now); spent > 0 {
			word = f.word(end, spent)
		}
		return word, false
	}
	if word-f.generation-end <= f.maxDebt {
		return word, false
	}
	return f.word(end, f.maxDebt), true
}

// Reset returns the word of a window that nothing was spent of.
func (f *FixedWindow) Reset(_, now int64) int64 { return f.word(f.end(now), 0) }

// Unspent is above every word that has spent nothing of the window of now.
func (f *FixedWindow) Unspent(now int64) int64 { return f.end(now) + f.unit }

// Expiry is the word itself.
func (f *FixedWindow) Expiry(word, _ int64) int64 { return word }

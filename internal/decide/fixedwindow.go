package decide

import "math/bits"

// FixedWindow admits a quota in each of consecutive windows. The state is one
// word: the beginning of the window, plus one step for each unit. No window
// holds more units than steps, so that the sum stays inside it. A word at or
// before the beginning of the current window means the same as none.
//
// A full window that owes more is the beginning of the next one plus the rest.
// So debt carries over by itself, and a late reading of the clock can only
// under-admit.
//
// The bits of a word below a step number the period that it was counted under.
// So words may be of several periods, and [FixedWindow.Succeed] touches none of
// them. Where a step is one tick, there are no such bits.
//
// With spread the windows of a key begin [FixedWindow.Phase] earlier: callers
// add it to every instant but those that ExpiredBefore and ExpiresAt take.
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
	until      int64        // from this instant on, no word of before weighs
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

// Succeed returns f as the limit that replaces old at now: units that were
// spent in the current window of a key stay spent, under another period in the
// window that is current when the key is next used.
func (f *FixedWindow) Succeed(old *FixedWindow, now int64) *FixedWindow {
	next := *f
	if old.window == f.window && old.phase == f.phase && old.spread == f.spread {
		next.generation, next.before, next.until = old.generation, old.before, old.until
		next.full = max(f.full, old.full)
		return &next
	}
	next.generation = (old.generation + 1) & (f.unit - 1)
	if next.generation == 0 { // used up: earlier counts may be lost
		return &next
	}
	last := *old
	if now >= last.until {
		last.before = nil
	}
	next.before, next.until = &last, addSaturated(now, 3*old.window.by)
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

// begin is the beginning of the window that holds now.
func (f *FixedWindow) begin(now int64) int64 {
	x := now + f.phase
	return now - (x - f.window.quo(x)*f.window.by)
}

// Decide charges n units if they fit into the current window.
func (f *FixedWindow) Decide(word, now, n int64) (int64, Verdict) {
	begin := f.begin(now)
	spent := f.spent(word, begin, now)
	next, over := f.charge(word, begin, spent, n)
	v := Verdict{Limit: f.quota, Allowed: over <= 0 || n == 0}
	if over <= 0 && n > 0 {
		spent += n * f.unit
	}
	left := f.units(max(f.depth-spent, 0))
	v.Remaining = left
	if spent > 0 {
		v.ResetAfter = f.edge(begin, spent, f.quota) - now
	}
	if left < f.quota {
		v.NextAfter = f.edge(begin, spent, left+1) - now
	}
	switch {
	case v.Allowed:
	case over == never:
		v.Never = true
	default:
		v.RetryAfter = f.edge(begin, spent, n) - now
	}
	return next, v
}

// Admit charges n units if they fit into the current window.
func (f *FixedWindow) Admit(word, now, n int64) (int64, bool) {
	begin := f.begin(now)
	next, over := f.charge(word, begin, f.spent(word, begin, now), n)
	return next, over <= 0 || n == 0
}

// charge returns the next word and how far the charge overshoots the quota: up
// to 0 it fits, beyond it is denied and the word stays.
func (f *FixedWindow) charge(word, begin, spent, n int64) (next, over int64) {
	if n > f.quota {
		return word, never
	}
	spent += n * f.unit
	over = spent - f.depth
	if over > 0 || n == 0 {
		return word, over
	}
	if next = begin + spent; next < begin {
		return word, never // past the end of the clock
	}
	return next | f.generation, over
}

// spent is what word says about the window of begin, which holds now: its
// count, or the whole window and the debt of the next one, in ticks.
func (f *FixedWindow) spent(word, begin, now int64) int64 {
	if word&(f.unit-1) != f.generation {
		return f.carried(word, begin, now)
	}
	return min(max(word-f.generation-begin, 0), f.maxDebt)
}

// carried is what a word that was counted under an earlier period has spent of
// the window of begin: the count of a window that has not ended, at most the
// quota. Where windows are spread, word and now have different phases, and the
// window may have ended up to a window of f before.
func (f *FixedWindow) carried(word, begin, now int64) int64 {
	tag := word & (f.unit - 1)
	old := f.before
	for old != nil && old.generation != tag {
		old = old.before
	}
	word -= tag
	if old == nil { // long ended, or of a later limit than f
		return min(max(word-begin, 0), f.depth)
	}
	since := old.begin(word)
	end := since + old.window.by
	if f.spread {
		end = addSaturated(end, f.window.by)
	}
	switch {
	case end <= now:
		return 0
	case since > now && !f.spread: // full, and in debt
		return f.depth
	}
	return min(word-since, f.depth)
}

// edge is the instant from which n units fit: the end of the window, or of the
// next one when that is in debt.
func (f *FixedWindow) edge(begin, spent, n int64) int64 {
	edge := begin + f.window.by
	if debt := spent - f.window.by; debt > 0 && debt+n*f.unit > f.depth {
		edge += f.window.by
	}
	return edge
}

// units is x / f.unit for x >= 0.
func (f *FixedWindow) units(x int64) int64 { return x >> f.shift }

// Charge describes a charge of n units at now.
func (f *FixedWindow) Charge(_, now, n int64, _ Verdict) Charge {
	return Charge{N: n, At: now, State: [3]int64{f.begin(now) | f.generation}}
}

// Refund gives n units of c back while their window lasts: later they could be
// spent twice. It takes them from the debt of the next window first. The second
// result is in ticks. The reading now must be taken after word was read.
func (f *FixedWindow) Refund(word int64, c Charge, now, n, _ int64) (int64, int64) {
	begin := f.begin(now)
	if begin|f.generation != c.State[0] || word&(f.unit-1) != f.generation {
		return word, 0
	}
	spent := f.spent(word, begin, now)
	cost := min(n, 2*f.units(f.window.by)) * f.unit
	given, left := min(cost, spent), spent-min(cost, spent)
	if debt := spent - f.window.by; debt >= 0 && cost >= debt {
		given = debt + min(cost-debt, f.full)
		left = f.full - (given - debt)
	}
	return (begin + left) | f.generation, given
}

// ForceCharge charges n units more. What does not fit is owed in the next
// window, up to one quota.
func (f *FixedWindow) ForceCharge(word int64, _ Charge, now, n int64) (int64, bool) {
	begin := f.begin(now)
	spent := f.spent(word, begin, now)
	cost := min(n, 2*f.quota+1) * f.unit
	if spent < f.window.by && spent+cost > f.depth {
		cost -= max(f.depth-spent, 0)
		spent = f.window.by
	}
	next := addSaturated(begin, min(spent+cost, f.maxDebt))
	return next&^(f.unit-1) | f.generation, spent+cost > f.maxDebt
}

// Plausible reports whether word was counted under this period in a window that
// has begun by now. Debt looks implausible too, and [FixedWindow.Clamp] leaves
// it.
func (f *FixedWindow) Plausible(word, now int64) bool {
	begin := f.begin(now)
	if word&(f.unit-1) != f.generation {
		return f.carried(word, begin, now) == 0
	}
	return word-f.generation-begin <= f.window.by
}

// Clamp rewrites a word of an earlier period as one of this, and cuts what is
// more than a quota beyond the current window.
func (f *FixedWindow) Clamp(word, now int64) (int64, bool) {
	begin := f.begin(now)
	if word&(f.unit-1) != f.generation {
		if spent := f.carried(word, begin, now); spent > 0 {
			word = (begin + spent) | f.generation
		}
		return word, false
	}
	if word-f.generation-begin <= f.maxDebt {
		return word, false
	}
	return (begin + f.maxDebt) | f.generation, true
}

// ExpiredBefore is above every word that says no more at now than none. It takes
// the reading without the key's phase.
func (f *FixedWindow) ExpiredBefore(now int64) int64 {
	horizon := f.begin(now) + f.unit
	if f.before != nil && now < f.until {
		horizon = min(horizon, f.before.ExpiredBefore(now))
	}
	return horizon
}

// ExpiresAt is the first instant, not before now, whose ExpiredBefore is above
// word.
func (f *FixedWindow) ExpiresAt(word, now int64) int64 {
	at := now
	begin := f.begin(now)
	if beyond := word - f.unit - begin; beyond >= 0 {
		at = begin + (f.window.quo(beyond)+1)*f.window.by
	}
	if f.before != nil && now < f.until {
		at = max(at, min(f.before.ExpiresAt(word, now), f.until))
	}
	return at
}

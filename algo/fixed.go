package algo

import (
	"fmt"
	"math/bits"
	"time"
)

// fixed is a fixed window with immutable parameters. All its state is one
// word that packs the window and the count: the beginning of the window plus
// count*T, where T is a share of the window, its length / quota rounded down.
// A word at or before the beginning of the current window is the same as none.
//
// So the word is an instant, as the TAT of a gcra is, and the window is a
// bucket that refills at the edges only. Debt carries into the next window by
// itself, a word means the same under every quota and period, and a late
// reading of the clock can only under-admit.
type fixed struct {
	quota   int64
	depth   int64 // quota*T, at most the window
	ceiling int64 // largest count*T that is believed: the window and one quota more
	phase   int64 // added to an instant before it is divided, 0 to window-1
	spread  bool  // each key has a further phase
	window  divisor
	share   divisor // T
}

// newFixed validates; the error names field and value. reference is an instant
// at which a window begins.
func newFixed(r Rate, reference int64, spread bool) (*fixed, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	window := toTicks(r.Period)
	share := window / r.Count
	if share == 0 {
		return nil, fmt.Errorf("rate: %v is faster than 1e9 per second", r)
	}
	f := &fixed{quota: r.Count, depth: r.Count * share, spread: spread}
	f.ceiling = window + f.depth
	f.window, f.share = newDivisor(window), newDivisor(share)
	f.phase = (window - (reference%window+window)%window) % window
	return f, nil
}

// begin is the beginning of the window of id that holds now.
func (f *fixed) begin(now int64, id uint64) int64 {
	x := now + f.phase
	if f.spread {
		x += f.place(id)
	}
	return now - (x - f.window.quo(x)*f.window.by)
}

// place is the phase of one key: one of 1024, so that nobody can read more of
// the key's hash from his resets. That of the empty key is 0.
func (f *fixed) place(id uint64) int64 {
	const top = 1023 << 54
	hi, _ := bits.Mul64(id*0xd6e8feb86659fd93&top, uint64(f.window.by))
	return int64(hi)
}

// horizon is above every word that says nothing to any key at now.
func (f *fixed) horizon(now int64) int64 {
	if f.spread {
		return now - f.window.by + 2
	}
	return f.begin(now, 0) + 1
}

// dies is the first instant after now whose horizon is above word.
func (f *fixed) dies(word, now int64) int64 {
	if f.spread {
		return max(word+f.window.by-1, now+1)
	}
	begin, edges := f.begin(now, 0), int64(1)
	if word > begin {
		edges = (word - begin + f.window.by - 1) / f.window.by
	}
	return begin + edges*f.window.by
}

// decide is the algorithm for a key without a further phase: what becomes of
// word when n units are asked for at now. It is the body of the
// compare-and-swap and the model that linearizability is checked against.
func (f *fixed) decide(word, now, n int64) (next int64, d Decision) {
	begin := f.begin(now, 0)
	next, over := f.charge(f.heal(word, begin), begin, n)
	f.explain(&d, next, begin, now, n, over)
	return next, d
}

// charge returns the next word and how far the charge overshoots the quota; up
// to 0 it fits, beyond it is denied and the word stays. The word must be
// believable.
func (f *fixed) charge(word, begin, n int64) (next, over int64) {
	if n > f.quota {
		return word, never
	}
	spent := max(word-begin, 0) + n*f.share.by
	over = spent - f.depth
	if over > 0 || n == 0 {
		return word, over
	}
	if next = begin + spent; next < begin {
		return word, never // past the end of the clock
	}
	return next, over
}

// believable reports whether a word can stem from these parameters and a
// reading in the window of begin.
func (f *fixed) believable(word, begin int64) bool { return word-begin <= f.ceiling }

// heal cuts a word that is not believable to the largest one that is.
func (f *fixed) heal(word, begin int64) int64 {
	if f.believable(word, begin) {
		return word
	}
	return begin + f.ceiling
}

// owe charges n units whether they fit or not: what does not fit is spent in
// the next window, and what does not fit there is not charged at all.
func (f *fixed) owe(word, begin, n int64) (next int64, cut bool) {
	spent := max(word-begin, 0)
	cost := min(n, 2*f.quota+1) * f.share.by
	if spent <= f.depth && spent+cost > f.depth {
		cost -= f.depth - spent
		spent = f.window.by
	}
	return addSaturated(begin, min(spent+cost, f.ceiling)), spent+cost > f.ceiling
}

// giveBack undoes charges of cost ticks, those of the next window first.
func (f *fixed) giveBack(word, begin, cost int64) (next int64) {
	spent := max(word-begin, 0)
	if spent > f.depth {
		debt := max(spent-f.window.by, 0)
		if cost < debt {
			return begin + spent - cost
		}
		spent, cost = f.depth, cost-debt
	}
	return begin + max(spent-cost, 0)
}

// explain turns the result of charge into a Decision.
func (f *fixed) explain(d *Decision, word, begin, now, n, over int64) {
	spent := max(word-begin, 0)
	left := f.share.quo(max(f.depth-spent, 0))
	d.Limit = f.quota
	d.Remaining = left
	if spent > 0 {
		d.ResetAfter = f.until(begin, now, spent, f.quota)
	}
	if left < f.quota {
		d.NextAfter = f.until(begin, now, spent, left+1)
	}
	switch {
	case over <= 0 || n == 0:
		d.Allowed = true
	case over == never:
		d.Reason, d.RetryAfter = Never, Forever
	default:
		d.Reason, d.RetryAfter = Quota, f.until(begin, now, spent, n)
	}
}

// until is the time to the first edge after which n units fit: the next one,
// or the one after it when the next window is in debt.
func (f *fixed) until(begin, now, spent, n int64) time.Duration {
	edge := begin + f.window.by
	if debt := spent - f.window.by; debt > 0 && debt+n*f.share.by > f.depth {
		edge += f.window.by
	}
	return toDuration(edge - now)
}

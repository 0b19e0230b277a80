package algo

import "github.com/sluice-go/sluice/internal/interleave"

// Release gives a canceled admission back while its window lasts. Any other
// outcome changes nothing: spent is spent. It implements [Releaser]; callers
// use [Lease.Release].
func (w *FixedWindow) Release(h Handle, o Outcome) {
	if o == Canceled {
		w.giveBack(h, 0)
	}
}

// Settle corrects the cost of an admission. Less gives the difference back
// while the window lasts; more is charged to the current window, and what does
// not fit there to the next one. It implements [Releaser]; callers use
// [Lease.Settle].
func (w *FixedWindow) Settle(h Handle, actual int64) {
	if actual <= h.N {
		w.giveBack(h, actual)
		return
	}
	w.owe(w.words.cell(h.Key), actual-h.N, h.State[1])
}

// giveBack leaves keep units of an admission. The clock is read after the word,
// so the word was charged in the same window or before. In that window it is
// the sum of what was charged and not given back, all of the admission
// included: a settlement that grew it fell into the window as well, because it
// came before. If the rate was changed since, such a settlement was charged at
// another share than the admission, and stays.
func (w *FixedWindow) giveBack(h Handle, keep int64) {
	began, share, first := h.State[0], h.State[1], h.State[2]
	c := w.words.cell(h.Key)
	for {
		f := w.limit.Load()
		var word int64
		c, word = c.load()
		now := w.words.clock.now()
		begin := f.begin(now, c.id)
		if begin != began || word <= begin || h.At <= w.since.Load() || c.stripe.voided(h.At) {
			return
		}
		n, keep := h.N, keep
		if h.At <= w.changed.Load() {
			n, keep = min(n, first), min(keep, first)
		}
		cost := min(n-keep, 2*f.window.by/share) * share // no debt is larger
		interleave.Point()
		if cost <= 0 || c.swap(word, f.giveBack(word, begin, cost), f.horizon(now)) != lost {
			return
		}
	}
}

// owe charges n units whether they fit or not. What lies beyond the ceiling is
// not charged; then nothing that was charged before can be given back, because
// it could be more than was charged. The same goes for units that are charged
// at a smaller share than refund, for which the admission's are given back.
func (w *FixedWindow) owe(c cell, n, refund int64) {
	for {
		f := w.limit.Load()
		var word int64
		c, word = c.load()
		now := w.words.clock.now()
		begin := f.begin(now, c.id)
		next, cut := f.owe(f.heal(word, begin), begin, n)
		if cut || f.share.by < refund {
			c.stripe.void(now)
		}
		interleave.Point()
		if c.swap(word, next, f.horizon(now)) != lost {
			return
		}
	}
}

// Reset gives key a fresh window. What was admitted before cannot be given back
// any more; neither can it, for a moment, under other keys.
func (w *FixedWindow) Reset(key string) {
	c := w.words.cell(key)
	for {
		f := w.limit.Load()
		var word int64
		c, word = c.load()
		now := w.words.clock.now()
		begin := f.begin(now, c.id)
		if word <= begin {
			return
		}
		c.stripe.void(now)
		interleave.Point()
		if c.swap(word, begin, f.horizon(now)) != lost {
			return
		}
	}
}

package algo

// The peek of each limiter: it decides like a charge and does not write.

func (b *bucket) peek(key string, n int64) (d Decision) {
	now := b.words.clock.now()
	c := b.words.cell(key)
	for {
		g := b.limit.Load()
		var tat int64
		if c, tat = c.load(); !g.believable(tat, now) {
			now = b.heal(c, g, tat)
			continue
		}
		if n > 0 && b.words.turnsAway(c, now) {
			return b.whenFull(g, now, key)
		}
		_, over := g.charge(tat, now, n)
		g.explain(&d, tat, now, n, over)
		return d
	}
}

func (w *FixedWindow) peek(key string, n int64) (d Decision) {
	now := w.words.clock.now()
	c := w.words.cell(key)
	for again := false; ; {
		f := w.limit.Load()
		var word int64
		c, word = c.load()
		begin := f.begin(now, c.id)
		if word-begin > f.window.by && !again {
			now, again = w.catchUp(c, f, word), true
			continue
		}
		if n > 0 && w.words.turnsAway(c, f.horizon(now)) {
			return w.whenFull(f, now, key)
		}
		word = f.heal(word, begin)
		_, over := f.charge(word, begin, n)
		f.explain(&d, word, begin, now, n, over)
		return d
	}
}

func (w *windowed[S, R, P]) peek(key string, n int64) (d Decision) {
	h, asked := w.cells.lock(key, w.cells.clock.now())
	r := P(w.limit.Load())
	if h.value == nil {
		return w.whenFull(r, asked, key)
	}
	changed := r.adopt(h.value, w.cells.clock)
	now := max(asked, r.latest(h.value))
	if n <= r.most()-r.used(h.value, now) {
		n = 0 // it fits: a peek says the rest
	}
	decideWindow[S](r, h.value, &d, asked, now, n)
	w.finish(h, r, now, changed)
	return d
}

func (l *warming) peek(key string, n int64) (d Decision) {
	h, now := l.cells.lock(key, l.cells.clock.now())
	if h.value == nil {
		return crowded(l.cells.onFull, 1, l.cells.soonest(key, now))
	}
	was, r := *h.value, l.ramp.Load()
	h.leave()
	_, over := r.charge(was, now, n)
	r.explain(&d, was, now, n, over)
	return d
}

func (c *coloring) peek(key string, n int64) (d Decision) {
	h, now := c.lock(key, c.cells.clock.now())
	if h.value == nil {
		return crowded(c.cells.onFull, c.limit(), c.cells.soonest(key, now<<tickShift))
	}
	was := h.value.meters
	h.leave()
	_, out := c.decide(was, now, n, Green)
	c.explain(&d, c.refill(was, now), n, out, now)
	return d
}

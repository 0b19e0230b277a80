package algo

// What each limiter of this package does inside a composition: it is charged at
// the composition's reading of the clock, and it is asked what a charge would
// get. Asking decides like a charge and leaves out the writing.

func (b *bucket) acquireIn(p *pass, lease *Lease, key string, n int64) {
	b.acquireAt(lease, p.now(b.words.clock), key, n)
}

func (b *bucket) askIn(p *pass, d *Decision, key string, n int64) {
	now := p.now(b.words.clock)
	c := b.words.cell(key)
	for {
		g := b.limit.Load()
		var tat int64
		if c, tat = c.load(); !g.believable(tat, now) {
			now = b.heal(c, g, tat)
			continue
		}
		if n > 0 && b.words.turnsAway(c, now) {
			*d = b.whenFull(g, now, key)
			return
		}
		_, over := g.charge(tat, now, n)
		g.explain(d, tat, now, n, over)
		return
	}
}

func (w *FixedWindow) acquireIn(p *pass, lease *Lease, key string, n int64) {
	w.acquireAt(lease, p.now(w.words.clock), key, n)
}

func (w *FixedWindow) askIn(p *pass, d *Decision, key string, n int64) {
	now := p.now(w.words.clock)
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
			*d = w.whenFull(f, now, key)
			return
		}
		word = f.heal(word, begin)
		_, over := f.charge(word, begin, n)
		f.explain(d, word, begin, now, n, over)
		return
	}
}

func (w *windowed[S, R, P]) acquireIn(p *pass, lease *Lease, key string, n int64) {
	w.acquireAt(lease, p.now(w.cells.clock), key, n)
}

func (w *windowed[S, R, P]) askIn(p *pass, d *Decision, key string, n int64) {
	h, asked := w.cells.lock(key, p.now(w.cells.clock))
	r := P(w.limit.Load())
	if h.value == nil {
		*d = w.whenFull(r, asked, key)
		return
	}
	changed := r.adopt(h.value, w.cells.clock)
	now := max(asked, r.latest(h.value))
	if n <= r.most()-r.used(h.value, now) {
		n = 0 // it fits: a peek says the rest
	}
	decideWindow[S](r, h.value, d, asked, now, n)
	w.finish(h, r, now, changed)
}

func (l *warming) acquireIn(p *pass, lease *Lease, key string, n int64) {
	l.acquireAt(lease, p.now(l.cells.clock), key, n)
}

func (l *warming) askIn(p *pass, d *Decision, key string, n int64) {
	h, now := l.cells.lock(key, p.now(l.cells.clock))
	if h.value == nil {
		*d = crowded(l.cells.onFull, 1, l.cells.soonest(key, now))
		return
	}
	was, r := *h.value, l.ramp.Load()
	h.leave()
	_, over := r.charge(was, now, n)
	r.explain(d, was, now, n, over)
}

func (c *coloring) acquireIn(p *pass, lease *Lease, key string, n int64) {
	c.acquireAt(lease, p.now(c.cells.clock), key, n)
}

func (c *coloring) askIn(p *pass, d *Decision, key string, n int64) {
	h, now := c.lock(key, p.now(c.cells.clock))
	if h.value == nil {
		*d = crowded(c.cells.onFull, c.limit(), c.cells.soonest(key, now<<tickShift))
		return
	}
	was := h.value.meters
	h.leave()
	_, out := c.decide(was, now, n, Green)
	c.explain(d, c.refill(was, now), n, out, now)
}

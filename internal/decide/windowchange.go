package decide

// Succeed returns f as the limit that replaces old: units that were spent in the
// current window of a key stay spent, under another period in the window that is
// current when the key is next used.
func (f *FixedWindow) Succeed(old *FixedWindow) *FixedWindow {
	if old.wall != nil {
		old = old.wall.inUse.Load()
	}
	next := *f
	if old.window == f.window && old.phase == f.phase && old.spread == f.spread && old.dates().equal(f.dates()) {
		next.generation, next.before = old.generation, old.before
		next.full, next.calendar, next.ahead = max(f.full, old.full), old.calendar, old.ahead
	} else {
		next.replace(old)
	}
	if f.wall != nil {
		return next.Follow(f.wall.read)
	}
	return &next
}

// replace numbers the windows of f, which come after those of old.
func (f *FixedWindow) replace(old *FixedWindow) {
	f.generation, f.before = (old.generation+1)&(f.unit-1), nil
	if f.generation != 0 { // else the numbers are used up, and earlier counts are lost
		f.before = old
	}
}

// tag returns the bits of word that number its period.
func (f *FixedWindow) tag(word int64) int64 { return word & (f.unit - 1) }

// carried returns the spent part of the current window of a word from an earlier period: its count,
// at most the quota, unless its window has ended. With spread the word is ahead by another phase
// than now, and may count for up to one window longer.
func (f *FixedWindow) carried(word, now int64) int64 {
	tag := f.tag(word)
	old := f.before
	for old != nil && old.generation != tag {
		old = old.before
	}
	if old == nil {
		return 0 // long ended
	}
	now += old.ahead - f.ahead
	end := old.floor(word - tag)
	spent, still := word-tag-end, end
	if f.spread {
		still = addSaturated(end, f.window.by)
	} else if old.floor(end-1) > now {
		return f.depth // full, and in debt
	}
	if still <= now {
		return 0
	}
	return min(spent, f.depth)
}

package keystore

import "github.com/sluice-go/sluice/internal/interleave"

// gap records where a key was absent.
type gap[V any] struct {
	segment *segment[V]
	inserts int64 // of the segment, before the key was found to be absent
}

// look looks again for a key whose slot changed hands. An absent one has noSlot and a gap.
func (t *table[V]) look(id uint64) (*slot, int64, gap[V]) {
	for {
		g := t.segment(id)
		inserts := g.inserts.Load()
		switch s := g.find(id); {
		case s != &noSlot:
			if w := s.word.Load(); w != tombstone && s.id.Load() == id {
				return s, w, gap[V]{}
			}
		case !t.moved(g, id):
			return s, 0, gap[V]{g, inserts}
		}
	}
}

// place gives an absent key a slot with the word next. The result is lost if a key was inserted in
// the segment since: it may have been this one, and have expired again.
func (s *Store[S, V]) place(gap gap[V], id uint64, next, now int64) Result {
	g := gap.segment
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inserts.Load() != gap.inserts || s.keys.segment(id) != g {
		return lost
	}
	at, r := s.room(g, id, now)
	if r == Updated || r == Evicted {
		g.slots[at].word.Store(next)
		// Last: a goroutine that sees the new number sees the slot as well.
		g.inserts.Add(1)
	}
	return r
}

// swapped undoes a swap from word to next in a slot that now belongs to another key. It reports
// whether the swap was in time: then id has since moved to another segment, with a word of at least
// next.
func (t *table[V]) swapped(s *slot, id uint64, word, next int64) bool {
	if s.restore(word, next) {
		return false
	}
	_, word, _ = t.look(id)
	return word >= next && !t.segment(id).has(s)
}

// restore undoes a swap from word to next, and reports whether it did. The slot expired and changed
// hands, and the new key's word happened to equal ours. If it has changed since, the charge stays
// with that key, which errs on the safe side.
func (s *slot) restore(word, next int64) bool {
	interleave.Point()
	return s.word.CompareAndSwap(next, word)
}

// lower swaps the word of the key id for a smaller one, such as after a refund, and
// reports whether it did. It holds the mutex, without which no slot changes its key: a
// new key in the slot could spend the refund of the old one, however briefly its word
// was too small.
func (t *table[V]) lower(s *slot, id uint64, word, next int64) bool {
	g := t.segment(id)
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.segment(id) == g && s.id.Load() == id && s.word.CompareAndSwap(word, next)
}

func (t *table[V]) hasRoom(key string, now int64) bool {
	id := t.hash(key)
	g := t.segment(id)
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.mayGrow(g) || g.index(id) >= 0 || g.nextExpiry(id) < now
}

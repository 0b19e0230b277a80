package keystore

// ref refers to the word of one key, wherever it is at the moment. (It has at
// most four fields, so that it stays in registers.)
type ref struct {
	id      uint64
	at      *slot   // &table.absent: the key has no slot
	stripe  *stripe // of the key; its table is nil for the empty key
	inserts int64   // stripe.inserts before the key was found to be absent
}

// reload looks for the key again where its slot is no longer its own. For an
// absent key it returns the overflow word.
//
// An absent key must be decided on at a new reading of the clock: it may have
// had a word that expired and was evicted since the caller's reading, and at
// that reading the word still counted.
func (r ref) reload() (ref, int64) {
	t := r.stripe.table
	for {
		r.inserts = r.stripe.inserts.Load()
		if r.at = t.find(r.id); r.at == &t.absent {
			return r, t.overflow[t.overflowIndex(r.id)].Load()
		}
		if w := r.at.word.Load(); w != tombstone && r.at.id.Load() == r.id {
			return r, w
		}
	}
}

// absent reports whether the key had no slot when it was last looked for.
func (r ref) absent() bool {
	return r.stripe.table != nil && r.at == &r.stripe.table.absent
}

// insert gives an absent key a slot with the word next; if there is none, the
// key shares its overflow word, or is turned away. It is lost if old, from
// which next was computed, is no longer the word of the key, or may have been
// another in between.
func (r ref) insert(old, next, expiredBefore int64) Result {
	st := r.stripe
	st.mu.Lock()
	defer st.mu.Unlock()
	t := st.table
	overflow := &t.overflow[t.overflowIndex(r.id)]
	if st.inserts.Load() != r.inserts || overflow.Load() != old {
		return lost
	}
	if i := t.take(r.id, expiredBefore); i >= 0 {
		t.slots[i].word.Store(next)
		// Last: a goroutine that sees the new number sees the slot as well.
		st.inserts.Add(1)
		return Updated
	}
	t.overflowed.Add(1)
	if !t.share {
		return Full
	}
	overflow.Store(next)
	return Updated
}

// ref finds the word of key. The empty key needs no hash.
func (s *Store[S, V]) ref(key string) ref {
	if key == "" {
		return ref{at: &s.unkeyed.slot, stripe: &s.unkeyed.stripe}
	}
	return s.table().ref(key)
}

func (t *table) ref(key string) ref {
	id := t.hash(key)
	return ref{id: id, at: t.find(id), stripe: t.stripe(id)}
}

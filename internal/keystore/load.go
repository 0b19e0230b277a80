package keystore

// Load returns the word of key in a store of words, without reading the clock;
// the word may have expired. It is 0 for a key that was never seen, unless the
// key shares a word.
func (s *Store[S, V]) Load(key string) int64 {
	w := s.ref(key)
	if word := w.at.word.Load(); word != tombstone && w.at.id.Load() == w.id {
		return word
	}
	_, word := w.reload()
	return word
}

package keystore

// Load returns the word of key in a store of words, without reading the clock; the word may have
// expired. An unused key has the initial word.
func (s *Store[S, V]) Load(key string) int64 {
	if key == "" {
		return s.unkeyed.word.Load()
	}
	if w, word, _ := s.keys.look(s.keys.hash(key)); w != &noSlot {
		return word
	}
	return s.initial
}

package distributed

// Instances is how many instances the limiter believes in.
func Instances(l *Limiter) int { return l.store.registry.known().count }

// StoreOf is the limiter's store.
func StoreOf(l *Limiter) *Store { return l.store }

// Proofs counts what the deny cache holds.
func Proofs(s *Store) (n int) {
	for i := range s.denied.shards {
		n += len(s.denied.shards[i].proofs)
	}
	return n
}

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

// BucketSource is the script that decides about buckets.
var BucketSource = prelude + bucketSource

// BlockKeys counts the keys that may have blocks.
func BlockKeys(l *Limiter) (n int) {
	for i := range l.blocks.shards {
		s := &l.blocks.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}

// RedisKey is where a limit keeps what it knows of a key.
func RedisKey(prefix, limit, key string) string { return redisKey(prefix, limit, key) }

package distributed

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Instances is the number of instances that the limiter counts.
func Instances(l *Limiter) int { return l.store.registry.known().count }

// StoreOf is the limiter's store.
func StoreOf(l *Limiter) *Store { return l.store }

// Proofs is the number of proofs in the deny cache.
func Proofs(s *Store) (n int) {
	for i := range s.denied.shards {
		n += s.denied.shards[i].len()
	}
	return n
}

// BucketSource is the script that decides about buckets.
func BucketSource() string { return bucketScript.Source() }

// text is the source of a script.
func text(source string) func() string { return func() string { return source } }

// BlockKeys is the number of keys with a block.
func BlockKeys(l *Limiter) int { return l.blocks.len() }

// RedisKey is the key in Redis of a limit's key.
func RedisKey(prefix, limit, key string) string { return remote.Key(prefix, remote.Escape(limit), key) }

// CountInstances is an option that undoes WithInstances.
var CountInstances = Option{"WithInstances", func(s *settings) error { s.instances = 0; return nil }}

// Last returns the last option of each name.
func Last(opts []Option) (last []Option) {
	for i, o := range opts {
		if !slices.ContainsFunc(opts[i+1:], func(later Option) bool { return later.name == o.name }) {
			last = append(last, o)
		}
	}
	return last
}

// ProbeEvery is an option that sets the least time between two probes.
func ProbeEvery(d time.Duration) Option {
	return Option{"ProbeEvery", func(s *settings) error { s.probeInterval = d; return nil }}
}

// Beat sends a heartbeat.
func Beat(s *Store) bool { return s.registry.beat() }

// FreshRequests keeps the channels of a bubble apart from those of other tests.
func FreshRequests(t *testing.T) { freshRequests(t) }

// Live is the number of instances in the registry.
func Live(s *Store) int {
	return int(s.Client().ZCard(context.Background(), registryKey(s.prefix, s.service)).Val())
}

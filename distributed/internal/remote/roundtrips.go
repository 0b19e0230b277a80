package remote

import (
	"slices"
	"sync"
	"time"
)

// roundTrips records the latest round trips to a node, including late replies.
type roundTrips struct {
	mu     sync.Mutex
	latest [128]time.Duration
	n      int           // recorded so far
	least  time.Duration // of the last few: the distance to the node
	reply  time.Time     // of the last one
}

// pace is the time between two batches to a distant node. Nearer nodes have one batch
// on the wire, and requests that arrive meanwhile form the next one.
const (
	pace      = 2 * time.Millisecond
	maxOnWire = 16
)

func (t *roundTrips) note(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const few = 16
	t.latest[t.n%len(t.latest)] = d
	t.n++
	t.reply = time.Now()
	t.least = d
	for i := 1; i < min(t.n, few); i++ {
		t.least = min(t.least, t.latest[(t.n-1-i)%len(t.latest)])
	}
}

func (t *roundTrips) distance() time.Duration { t.mu.Lock(); defer t.mu.Unlock(); return t.least }

// width returns the number of batches that may be on the wire, so that a request does
// not wait for a round trip before its own.
func (t *roundTrips) width() int {
	return min(1+int(t.distance()/pace), maxOnWire)
}

// answeredWithin reports whether a reply has arrived in the last d.
func (t *roundTrips) answeredWithin(d time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n > 0 && time.Since(t.reply) < d
}

// quantiles returns the median and the 99th percentile; 0 without a reply.
func (t *roundTrips) quantiles() (median, p99 time.Duration) {
	t.mu.Lock()
	sorted := slices.Clone(t.latest[:min(t.n, len(t.latest))])
	t.mu.Unlock()
	if len(sorted) == 0 {
		return 0, 0
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2], sorted[len(sorted)*99/100]
}

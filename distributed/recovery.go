package distributed

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Recovery is what becomes of units that were spent without Redis, when Redis
// is back.
type Recovery uint8

const (
	// Forget leaves the shared buckets as they are: they have filled meanwhile,
	// so a key may spend its burst again.
	Forget Recovery = iota
	// Settle charges them to the shared buckets as debt, a burst for each
	// instance and key at most. Up to 10000 keys of each limit are kept; what
	// else was spent is forgotten, and so are units in flight. What was given
	// back without Redis counts as spent.
	Settle
)

// String names the recovery.
func (r Recovery) String() string { return nameOf(int(r), "Forget", "Settle") }

// debts is what this instance has admitted without Redis. A nil pointer keeps
// nothing.
type debts struct {
	mu    sync.Mutex
	spent map[string]int64
}

const (
	mostDebts   = 10_000
	debtsAtOnce = 64 // a pause between so many, so that instances do not all settle at once
)

func newDebts() *debts { return &debts{spent: map[string]int64{}} }

func (d *debts) add(key string, n int64) {
	if d == nil || n == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.spent[key]; known || len(d.spent) < mostDebts {
		d.spent[key] += n
	}
}

func (d *debts) take() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.spent
	d.spent = map[string]int64{}
	return all
}

// settle charges everything, in batches with random pauses.
func (d *debts) settle(l *Limiter) {
	lim := l.load()
	done := 0
	for key, n := range d.take() {
		if done%debtsAtOnce == 0 && !l.store.sleep(rand.N(20*time.Millisecond)) {
			return
		}
		done++
		h := algo.Handle{State: [3]int64{newID()}}
		l.credit(l.redisKey(key), lim.script(), lim.owe(h, min(n, lim.describe().Quota)))
	}
}

package meter

import (
	"fmt"
	"hash/maphash"
	"math"
	"sync"
)

// Estimator learns the cost of work in proportion to a quantity known before it runs,
// such as the size of its input or the most that it may cost, and proposes how many
// units to reserve:
//
//	n := estimator.Estimate("large-model", user, inputBytes, maxTokens)
//	m, err := meter.Start(ctx, tokens, user, n, 100)
//	...
//	m.Settle(used)
//	estimator.Learn("large-model", user, inputBytes, used)
//
// The estimate is a quantile of settled/known over the latest observations of a key in
// a class of work. An observation weighs 1-1/window times as much as the one after it.
// For a key with few observations, the estimate comes from the class; for a new class,
// it is the given maximum.
//
// Error: the estimate is at least that quantile of the weighted observations, and less
// than 1.19 times it (2^(1/4)), for ratios from 2^-16 to 2^24. The future may differ
// from the past, so an estimate bounds nothing: the limit and the [Meter] do. A client
// can raise and lower the estimates of its own key and, with many requests, of its
// class, from which new keys have their estimates.
//
// Memory: 700 bytes for each key and class, at most maxKeys of each; beyond this number
// the least recently used ones are forgotten. It is safe for concurrent use.
type Estimator struct {
	quantile, keep float64

	mu            sync.Mutex
	seed          maphash.Seed
	classes, keys histories
}

// NewEstimator makes an Estimator of a quantile above 0 and below 1, over a window of
// 1 or more observations, for at most maxKeys keys, 2 or more.
//
// A high quantile wastes more reservations, because the unused part of a long work has
// drained when the work ends; with a low one more work costs more than its reservation.
// Streams that a [Meter] charges while they run need no estimate but a block: with them
// 0.3 used 0.98 of the limit, 0.5 0.95 and 0.9 0.47 (TestW1_StreamsStayWithinTheLimit).
//
// Estimate again for each try of work that was denied: the first estimates, from before
// anything is learned, are the most that the work may cost.
func NewEstimator(quantile float64, window, maxKeys int) (*Estimator, error) {
	switch {
	case !(quantile > 0 && quantile < 1):
		return nil, fmt.Errorf("meter: estimator: the quantile is %v, want above 0 and below 1", quantile)
	case window < 1:
		return nil, fmt.Errorf("meter: estimator: the window is %d, want 1 or more", window)
	case maxKeys < 2:
		return nil, fmt.Errorf("meter: estimator: maxKeys is %d, want 2 or more", maxKeys)
	}
	return &Estimator{
		quantile: quantile, keep: 1 - 1/float64(window), seed: maphash.MakeSeed(),
		classes: histories{most: maxKeys}, keys: histories{most: maxKeys},
	}, nil
}

// Estimate proposes a reservation of 1 to most units for work of a class, under key. known is the
// quantity to which settled costs are proportional; below 1 it counts as 1. A most of 0 or less
// means unknown. Without any observation the estimate is most, or else known.
func (e *Estimator) Estimate(class, key string, known, most int64) int64 {
	known = max(known, 1)
	if most <= 0 {
		most = math.MaxInt64
	}
	e.mu.Lock()
	ratio, ok := e.ratio(class, key)
	e.mu.Unlock()
	n := ratio * float64(known)
	switch {
	case !ok && most == math.MaxInt64:
		return known
	case !ok || n >= float64(most):
		return most
	}
	return max(int64(math.Ceil(n)), 1)
}

// ratio returns the quantile of the key, or of its class; false if neither has enough observations.
func (e *Estimator) ratio(class, key string) (float64, bool) {
	enough := min(1/(1-e.quantile), 1/(1-e.keep)) / 2
	for _, h := range []*history{e.keys.find(e.hash(class, key)), e.classes.find(e.hash(class, ""))} {
		if h != nil && h.total() >= enough {
			return h.quantile(e.quantile), true
		}
	}
	return 0, false
}

// Learn records that work of a class, under key, has cost settled units, where known was known
// before. It ignores a negative cost.
func (e *Estimator) Learn(class, key string, known, settled int64) {
	if settled < 0 {
		return
	}
	bucket := bucketOf(float64(settled) / float64(max(known, 1)))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys.open(e.hash(class, key)).learn(bucket, e.keep)
	e.classes.open(e.hash(class, "")).learn(bucket, e.keep)
}

func (e *Estimator) hash(class, key string) uint64 {
	return maphash.Comparable(e.seed, [2]string{class, key})
}

const (
	perOctave  = 4
	leastRatio = -16 * perOctave  // of the first bucket, as a logarithm
	ratios     = 40*perOctave + 1 // the last one ends at 2^24
)

// bucketOf returns the bucket of a ratio: bucket i has those up to 2^((leastRatio+i)/4).
func bucketOf(ratio float64) int {
	if ratio <= 0 {
		return 0
	}
	return min(max(int(math.Ceil(math.Log2(ratio)*perOctave))-leastRatio, 0), ratios-1)
}

// history holds the weights of past ratios.
type history struct{ weights [ratios]float32 }

func (h *history) learn(bucket int, keep float64) {
	for i := range h.weights {
		h.weights[i] *= float32(keep)
	}
	h.weights[bucket]++
}

func (h *history) total() (sum float64) {
	for _, w := range h.weights {
		sum += float64(w)
	}
	return sum
}

// quantile returns the upper edge of the bucket that has it.
func (h *history) quantile(q float64) float64 {
	left := q * h.total()
	for i, w := range h.weights {
		if left -= float64(w); left <= 0 {
			return math.Exp2(float64(leastRatio+i) / perOctave)
		}
	}
	return math.Exp2(float64(leastRatio+ratios-1) / perOctave)
}

// histories holds a bounded number of keys. Use moves a key to the young half; when that is full,
// the old half is forgotten.
type histories struct {
	most       int
	young, old map[uint64]*history
}

// find returns nil for a key without a history.
func (t *histories) find(id uint64) *history {
	h := t.young[id]
	if h == nil {
		if h = t.old[id]; h != nil {
			t.add(id, h)
		}
	}
	return h
}

func (t *histories) open(id uint64) *history {
	h := t.find(id)
	if h == nil {
		h = new(history)
		t.add(id, h)
	}
	return h
}

func (t *histories) add(id uint64, h *history) {
	if t.young == nil || len(t.young) >= t.most/2 {
		t.young, t.old = map[uint64]*history{}, t.young
	}
	t.young[id] = h
}

// Package line lets callers that wait for the same limiter and key pass in the
// order of their arrival: only the first asks the limiter, so that a late small
// request does not overtake an early large one.
package line

import (
	"container/list"
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// bucket identifies the line of callers of one limiter and key.
type bucket struct {
	limiter any
	key     string
}

// queue is the line for one bucket. It exists while callers wait.
type queue struct {
	places list.List // of *Place
	units  int64
}

var (
	waiting atomic.Int64 // callers in all lines, to be read without the lock
	mu      sync.Mutex
	queues  = map[bucket]*queue{}
)

// Place is the place of one caller. A caller that need not wait for others has a
// nil Place.
type Place struct {
	bucket  bucket
	units   int64
	ahead   int64
	turn    chan struct{} // closed when the caller is first
	element *list.Element
}

// Waits reports whether callers wait for limiter under key.
func Waits(limiter any, key string) bool {
	if waiting.Load() == 0 || !canCompare(limiter) {
		return false
	}
	mu.Lock()
	defer mu.Unlock()
	return queues[bucket{limiter, key}] != nil
}

// Join takes the last place of the line for n units of limiter under key. Leave
// must be called. A limiter that cannot be compared has no line: the result is nil.
func Join(limiter any, key string, n int64) *Place {
	if !canCompare(limiter) {
		return nil
	}
	p := &Place{bucket: bucket{limiter, key}, units: n, turn: make(chan struct{})}
	mu.Lock()
	defer mu.Unlock()
	q := queues[p.bucket]
	if q == nil {
		q = new(queue)
		queues[p.bucket] = q
		close(p.turn)
	}
	p.ahead, q.units = q.units, q.units+n
	p.element = q.places.PushBack(p)
	waiting.Add(1)
	return p
}

// canCompare reports whether a limiter can be part of a map's key.
func canCompare(limiter any) bool {
	v := reflect.ValueOf(limiter)
	return v.Kind() == reflect.Pointer || v.Comparable()
}

// Ahead returns the units of the callers that were in the line at Join.
func (p *Place) Ahead() int64 {
	if p == nil {
		return 0
	}
	return p.ahead
}

// Wait waits for the turn of the caller, until ctx ends or at most d, above 0. It
// reports whether the turn has come.
func (p *Place) Wait(ctx context.Context, d time.Duration) bool {
	if p == nil {
		return true
	}
	select {
	case <-p.turn:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.turn:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// Leave leaves the line, and lets the next caller be first.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	q := queues[p.bucket]
	first := q.places.Front() == p.element
	q.places.Remove(p.element)
	q.units -= p.units
	waiting.Add(-1)
	if next := q.places.Front(); next == nil {
		delete(queues, p.bucket)
	} else if first {
		close(next.Value.(*Place).turn)
	}
}

// Package serverwait remembers the waits that servers ask their clients for, and reads them
// from answers.
package serverwait

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Places is for how many places a client remembers waits by default.
	Places = 1024
	// Longest is the longest wait that a server can ask for. No process waits longer.
	Longest = 365 * 24 * time.Hour
)

// Parse is the time that a text says in units ("s" or "ms"), whole or with a fraction, at
// most Longest; false if it says none.
func Parse(text, unit string) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if digits := whole + fraction; digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	d, err := time.ParseDuration(text + unit)
	if err != nil { // too large
		return Longest, true
	}
	return min(d, Longest), true
}

// Place is the host of a call and the key that the call is limited by.
type Place struct{ Host, Key string }

// Waits remembers until when servers asked for no further call.
type Waits struct {
	most  int
	count atomic.Int64 // len(until), to be read without the lock
	mu    sync.Mutex
	until map[Place]time.Time
}

// New remembers at most that many places.
func New(most int) *Waits { return &Waits{most: most, until: map[Place]time.Time{}} }

// Await sleeps until p accepts calls again. The error is that of sleep.
func (w *Waits) Await(ctx context.Context, p Place, sleep func(context.Context, time.Duration) error) error {
	for d := w.Left(p); d > 0; d = w.Left(p) {
		if err := sleep(ctx, d); err != nil {
			return fmt.Errorf("the server asked to wait %v: %w", d, err)
		}
	}
	return nil
}

// Left is how much longer p asked to wait.
func (w *Waits) Left(p Place) time.Duration {
	if w.count.Load() == 0 {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	until, ok := w.until[p]
	if !ok {
		return 0
	}
	d := time.Until(until)
	if d <= 0 {
		delete(w.until, p)
		w.count.Store(int64(len(w.until)))
	}
	return d
}

// Update remembers that p asked to wait for d. A wait is never shortened: answers
// arrive in any order.
func (w *Waits) Update(p Place, d time.Duration) {
	if d = min(d, Longest); d <= 0 {
		return
	}
	until := time.Now().Add(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.until[p]
	if known && !before.Before(until) {
		return
	}
	if !known && len(w.until) >= w.most {
		w.forget()
	}
	w.until[p] = until
	w.count.Store(int64(len(w.until)))
}

// forget drops the waits that are over, and the one that ends first if there
// are none.
func (w *Waits) forget() {
	var first Place
	var end time.Time
	now, dropped := time.Now(), false
	for p, until := range w.until {
		if !until.After(now) {
			delete(w.until, p)
			dropped = true
		} else if end.IsZero() || until.Before(end) {
			first, end = p, until
		}
	}
	if !dropped {
		delete(w.until, first)
	}
}

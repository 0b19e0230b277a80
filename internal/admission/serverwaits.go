package admission

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

const (
	// DefaultServers is for how many servers a client remembers waits.
	DefaultServers = 1024
	// MaxServerWait is the longest wait that a server can ask for. No process waits longer.
	MaxServerWait = 365 * 24 * time.Hour
)

// Number is the time that a text says in units ("s" or "ms"), whole or with a fraction, at
// most MaxServerWait; false if it says none.
func Number(text, unit string) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if digits := whole + fraction; digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	d, err := time.ParseDuration(text + unit)
	if err != nil { // too large
		return MaxServerWait, true
	}
	return min(d, MaxServerWait), true
}

// Server is the host of a call and the key that the call is limited by.
type Server struct{ Host, Key string }

// ServerWaits remembers until when servers asked for no further call.
type ServerWaits struct {
	most  int
	count atomic.Int64 // len(until), to be read without the lock
	mu    sync.Mutex
	until map[Server]time.Time
}

// NewServerWaits remembers at most that many servers.
func NewServerWaits(most int) *ServerWaits {
	return &ServerWaits{most: most, until: map[Server]time.Time{}}
}

// Wait returns when s accepts calls again, or at once with an error that wraps
// algo.ErrWait if ctx ends sooner, or if that takes longer than most.
func (p *ServerWaits) Wait(ctx context.Context, s Server, most time.Duration) error {
	for {
		d := p.Left(s)
		switch {
		case d <= 0:
			return nil
		case d > most:
			return fmt.Errorf("the server asked to wait: %w: %v is too long", algo.ErrWait, d)
		}
		if err := algo.Sleep(ctx, d); err != nil {
			return fmt.Errorf("the server asked to wait %v: %w", d, err)
		}
	}
}

// Left is how much longer s asked to wait.
func (p *ServerWaits) Left(s Server) time.Duration {
	if p.count.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.until[s]
	if !ok {
		return 0
	}
	d := time.Until(until)
	if d <= 0 {
		delete(p.until, s)
		p.count.Store(int64(len(p.until)))
	}
	return d
}

// Update remembers that s asked to wait for d. A wait is never shortened: answers
// arrive in any order.
func (p *ServerWaits) Update(s Server, d time.Duration) {
	if d = min(d, MaxServerWait); d <= 0 {
		return
	}
	until := time.Now().Add(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.until[s]
	if known && !before.Before(until) {
		return
	}
	if !known && len(p.until) >= p.most {
		p.forget()
	}
	p.until[s] = until
	p.count.Store(int64(len(p.until)))
}

// forget drops the waits that are over, and the one that ends first if there
// are none.
func (p *ServerWaits) forget() {
	var first Server
	var end time.Time
	now, dropped := time.Now(), false
	for s, until := range p.until {
		if !until.After(now) {
			delete(p.until, s)
			dropped = true
		} else if end.IsZero() || until.Before(end) {
			first, end = s, until
		}
	}
	if !dropped {
		delete(p.until, first)
	}
}

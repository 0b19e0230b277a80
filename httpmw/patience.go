package httpmw

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

const (
	defaultMaxServers = 1024
	// mostPatience is how long a server is believed.
	mostPatience = time.Hour
)

// WithMaxServers sets for how many pairs of host and key a transport remembers
// that the server asked it to wait, 1 or more; the default is 1024. Beyond, the
// pair whose wait ends first is forgotten.
func WithMaxServers(n int) Option {
	return Option{"WithMaxServers", func(c *config) {
		require(n >= 1, "WithMaxServers", "the number is "+strconv.Itoa(n)+", want 1 or more")
		c.maxServers = n
	}}
}

// server is where a request goes, and for whom.
type server struct{ host, key string }

// patience remembers until when servers want to be left alone.
type patience struct {
	most  int
	count atomic.Int64 // len(until), to be read without the lock
	mu    sync.Mutex
	until map[server]time.Time
}

func newPatience(most int) *patience {
	return &patience{most: most, until: map[server]time.Time{}}
}

// wait returns when s may be asked again, or at once with an error if ctx ends
// sooner.
func (p *patience) wait(ctx context.Context, s server) error {
	for {
		d := p.left(s)
		if d <= 0 {
			return nil
		}
		if err := algo.Sleep(ctx, d); err != nil {
			return fmt.Errorf("the server asked to wait: %w", err)
		}
	}
}

func (p *patience) left(s server) time.Duration {
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

// heed remembers what resp asks for. A wait is never shortened: answers arrive
// in any order.
func (p *patience) heed(s server, resp *http.Response) {
	d := min(askedFor(resp, time.Now()), mostPatience)
	if d <= 0 {
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
func (p *patience) forget() {
	var first server
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

// askedFor is how long the server wants no request: the longer one of
// Retry-After on 429 and 503, and of RateLimit where nothing remains.
func askedFor(resp *http.Response, now time.Time) (d time.Duration) {
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		d = retryAfter(resp.Header, now)
	}
	if lines := resp.Header[limitField]; len(lines) > 0 {
		for _, item := range parseLimits(strings.Join(lines, ",")) {
			if item.remaining == 0 {
				d = max(d, wholeSeconds(item.after))
			}
		}
	}
	return d
}

// retryAfter parses the field (RFC 9110 section 10.2.3): seconds, or a date,
// which is compared with the server's own clock if it tells the time.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get(retryAfterField)
	if s, err := strconv.ParseUint(value, 10, 63); err == nil {
		return wholeSeconds(int64(s))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return at.Sub(now)
}

func wholeSeconds(s int64) time.Duration {
	return time.Duration(min(max(s, 0), int64(mostPatience/time.Second))) * time.Second
}

package httpmw

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/sluice-go/sluice/algo"
)

const (
	defaultMaxServers = 1024
	// maxServerWait is the longest wait that a server can ask for.
	maxServerWait = time.Hour
)

// WithMaxServers sets for how many pairs of host and key a transport remembers
// that the server asked it to wait, 1 or more; the default is 1024. Beyond that
// number, the pair whose wait ends first is forgotten.
func WithMaxServers(n int) Option {
	return newOption("WithMaxServers", func(s *settings) error {
		s.Own.maxServers = n
		if n < 1 {
			return fmt.Errorf("is %d, want 1 or more", n)
		}
		return nil
	})
}

// server is the host of a request and the key that it is limited by.
type server struct{ host, key string }

// serverBackoff remembers until when servers asked for no further request.
type serverBackoff struct {
	most  int
	count atomic.Int64 // len(until), to be read without the lock
	mu    sync.Mutex
	until map[server]time.Time
}

func newServerBackoff(most int) *serverBackoff {
	return &serverBackoff{most: most, until: map[server]time.Time{}}
}

// wait returns when s accepts requests again, or at once with an error if ctx
// ends sooner.
func (p *serverBackoff) wait(ctx context.Context, s server) error {
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

func (p *serverBackoff) left(s server) time.Duration {
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

// update remembers the wait that resp asks for. A wait is never shortened:
// answers arrive in any order.
func (p *serverBackoff) update(s server, resp *http.Response) {
	d := min(waitIn(resp, time.Now()), maxServerWait)
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
func (p *serverBackoff) forget() {
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

// waitIn is the wait that an answer asks for: the longer one of Retry-After on
// 429 and 503, and of RateLimit where nothing remains.
func waitIn(resp *http.Response, now time.Time) (d time.Duration) {
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		d = retryAfter(resp.Header, now)
	}
	return max(d, waitUntilMore(resp.Header[limitField]))
}

// maxField is how much of a field is read.
const maxField = 4096

// waitUntilMore is the longest t in the RateLimit fields of the limits of which
// nothing remains. A field that is not well-formed is ignored as a whole.
func waitUntilMore(lines []string) (d time.Duration) {
	size := 0
	for _, line := range lines {
		if size += len(line); size > maxField {
			return 0
		}
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return 0
	}
	for _, member := range list {
		item, isItem := member.(httpsfv.Item)
		if _, isString := item.Value.(string); !isItem || !isString {
			return 0
		}
		r, hasR := item.Params.Get("r")
		t, _ := item.Params.Get("t")
		left, isNumber := r.(int64)
		after, _ := t.(int64)
		if hasR && isNumber && left <= 0 {
			d = max(d, wholeSeconds(after))
		}
	}
	return d
}

// retryAfter parses the field (RFC 9110 section 10.2.3): seconds, or a date,
// which is compared with the server's own clock if the answer has a Date.
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
	return time.Duration(min(max(s, 0), int64(maxServerWait/time.Second))) * time.Second
}

// Package loadgen sends HTTP requests at given instants, whether or not the
// answers come: an open loop. A generator that waits for answers slows down
// with the server and so never overloads it.
//
// It speaks just enough HTTP/1.1 for that, because net/http's client costs more
// processor time for a request than a small handler does: GET without a body,
// and answers with a Content-Length that fit into 4 KiB with their head. Other
// answers break the connection.
package loadgen

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Phase is a time of one rate.
type Phase struct {
	Rate     float64 // arrivals a second; 0: silence
	Duration time.Duration
	Burst    int // arrivals at once, at even distances; 0: single ones, Poisson
}

// Config describes the load.
type Config struct {
	URL     string
	Phases  []Phase
	Timeout time.Duration // after which a client gives up and hangs up
	MaxOpen int           // most connections; arrivals beyond fail at once
	Open    int           // connections that are open when the load begins, as those of a pool are
	Seed    uint64
}

// arrivals are the instants at which requests are due, in order.
func (c *Config) arrivals() iter.Seq[time.Duration] {
	return func(yield func(due time.Duration) bool) {
		rng, begin := rand.New(rand.NewPCG(c.Seed, 1)), time.Duration(0)
		for _, p := range c.Phases {
			for due := p.after(begin, rng); due < begin+p.Duration; due = p.after(due, rng) {
				for range max(p.Burst, 1) {
					if !yield(due) {
						return
					}
				}
			}
			begin += p.Duration
		}
	}
}

// mean is about how many requests are due.
func (c *Config) mean() (n float64) {
	for _, p := range c.Phases {
		n += p.Rate * p.Duration.Seconds()
	}
	return n
}

// Answer is the result of one request.
type Answer struct {
	At     time.Duration // when it was due, since the start
	Took   time.Duration // from when it was due
	Status int16         // the HTTP status, or one of the following
}

// The results without a status.
const (
	TimedOut int16 = -1
	NoConn   int16 = -2 // no connection could be opened
	Broken   int16 = -3 // the connection broke
)

// OK reports whether a is an answer with status 200 within slo.
func (a Answer) OK(slo time.Duration) bool {
	return a.Status == http.StatusOK && a.Took <= slo
}

// patrol is how often the requests that have taken too long are looked for.
const patrol = 5 * time.Millisecond

// Run sends the phases and returns an answer for each request, in order. Requests that are overdue,
// because the process did not run, go out at once: their time counts from when they were due.
func Run(c Config) ([]Answer, error) {
	if c.Timeout <= 0 {
		return nil, fmt.Errorf("loadgen: the timeout is %v, want more than 0", c.Timeout)
	}
	g, err := newGenerator(c)
	if err != nil {
		return nil, err
	}
	if err := g.openIdle(c.Open); err != nil {
		return nil, err
	}
	g.start = time.Now()
	for due := range c.arrivals() {
		g.waitFor(due)
		if len(g.answers) == cap(g.answers) {
			err = errFull
			break
		}
		g.ask(due)
		g.sweep()
	}
	for g.swept < len(g.answers) && g.undecided.Load() > 0 {
		time.Sleep(patrol)
		g.sweep()
	}
	g.close()
	return g.answers, err
}

// Paced calls send for each arrival of the phases when it is due, without waiting for it, and
// returns the answers once all are there: Run for a protocol that this package does not speak. It
// costs a goroutine for each request.
func Paced(c Config, send func() (status int16)) []Answer {
	all := make([]Answer, 0, int(c.mean()*1.2)+1000)
	var calls sync.WaitGroup
	start := time.Now()
	for due := range c.arrivals() {
		if wait := due - time.Since(start); wait > early {
			time.Sleep(wait)
		}
		if len(all) == cap(all) {
			break
		}
		all = append(all, Answer{At: due})
		a := &all[len(all)-1]
		calls.Go(func() { a.Status = send(); a.Took = time.Since(start) - a.At })
	}
	calls.Wait()
	return all
}

func newGenerator(c Config) (*generator, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return nil, fmt.Errorf("loadgen: the URL is %q, want http://host:port/path", c.URL)
	}
	if c.MaxOpen < 1 {
		return nil, fmt.Errorf("loadgen: MaxOpen is %d, want 1 or more", c.MaxOpen)
	}
	if c.Open < 0 || c.Open > c.MaxOpen {
		return nil, fmt.Errorf("loadgen: Open is %d, want 0 to MaxOpen, %d", c.Open, c.MaxOpen)
	}
	for _, p := range c.Phases {
		if !(p.Rate >= 0) || math.IsInf(p.Rate, 0) || p.Duration < 0 {
			return nil, fmt.Errorf("loadgen: a phase is %g a second for %v, want 0 or more of both", p.Rate, p.Duration)
		}
	}
	return &generator{
		host:    u.Host,
		request: []byte("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\n\r\n"),
		maxOpen: int64(c.MaxOpen), timeout: c.Timeout,
		answers: make([]Answer, 0, int(c.mean()*1.1)+1000),
	}, nil
}

// generator is one run. One goroutine sends, and each connection has a reader.
// The goroutine that takes the answer out of its connection records it; the sender
// reads the answers once all readers are gone.
type generator struct {
	host    string
	request []byte
	timeout time.Duration
	maxOpen int64

	start   time.Time
	answers []Answer // grows only within its capacity: pointers stay
	swept   int      // all before it are decided
	flying  []*conn  // of each answer, its connection
	conns   []*conn

	open, undecided atomic.Int64
	idle            idleConns
	readers         sync.WaitGroup
}

var errFull = errors.New("loadgen: more arrivals than a Poisson process makes")

// after is when the next arrival is due.
func (p Phase) after(due time.Duration, rng *rand.Rand) time.Duration {
	gap := float64(p.Burst) / p.Rate * 1e9
	if p.Burst == 0 {
		gap = rng.ExpFloat64() / p.Rate * 1e9
	}
	if gap < math.MaxInt64/2 {
		return due + time.Duration(gap)
	}
	return math.MaxInt64
}

// early is how long before it is due a request may go out: a sleep so short
// would end too late.
const early = 50 * time.Microsecond

func (g *generator) waitFor(due time.Duration) {
	for {
		wait := due - time.Since(g.start)
		if wait <= early {
			return
		}
		time.Sleep(min(wait, patrol))
		if wait > patrol {
			g.sweep()
		}
	}
}

// ask sends one request, on a connection that is idle or else on a new one.
func (g *generator) ask(due time.Duration) {
	g.answers = append(g.answers, Answer{At: due})
	a := &g.answers[len(g.answers)-1]
	g.undecided.Add(1)
	c := g.idle.pop()
	for c != nil && !c.take(a) {
		c = g.idle.pop()
	}
	if c == nil {
		g.flying = append(g.flying, g.askAnew(a))
		return
	}
	g.flying = append(g.flying, c)
	if _, err := c.Write(g.request); err != nil {
		g.settle(c, Broken)
	}
}

// askAnew sends a request on a new connection. It does not wait until that is
// open: where the server is too busy to accept, this takes seconds.
func (g *generator) askAnew(a *Answer) *conn {
	c := &conn{}
	c.answer.Store(a)
	if g.open.Load() >= g.maxOpen {
		g.settle(c, NoConn)
		return nil
	}
	g.serve(c, g.read)
	return c
}

// serve runs the reader of a new connection.
func (g *generator) serve(c *conn, read func(*conn)) {
	g.open.Add(1)
	g.conns = append(g.conns, c)
	g.readers.Go(func() {
		defer g.open.Add(-1)
		read(c)
	})
}

// settle records the result of the request on c, once. It reports whether
// there was one.
func (g *generator) settle(c *conn, status int16) bool {
	a := c.answer.Swap(nil)
	if a == nil {
		return false
	}
	took := time.Since(g.start) - a.At
	g.decide(a, max(took, 1), status) // it went out up to early before it was due
	return true
}

func (g *generator) decide(a *Answer, took time.Duration, status int16) {
	a.Took, a.Status = took, status
	g.undecided.Add(-1)
}

// sweep gives up requests that have taken too long. All have the same timeout, so the
// oldest comes first.
func (g *generator) sweep() {
	now := time.Since(g.start)
	for g.swept < len(g.answers) && now-g.answers[g.swept].At > g.timeout {
		a := &g.answers[g.swept]
		if c := g.flying[g.swept]; c != nil && c.answer.CompareAndSwap(a, nil) {
			c.hangUp()
			g.decide(a, g.timeout, TimedOut)
		}
		g.flying[g.swept] = nil
		g.swept++
	}
}

// close closes all connections and waits until all answers are recorded.
func (g *generator) close() {
	for _, c := range g.conns {
		c.hangUp()
	}
	g.readers.Wait()
}

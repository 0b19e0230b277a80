// Package loadgen sends HTTP requests at given instants, whether or not the
// answers come: an open loop. A generator that waits for answers slows down
// with the server and so never overloads it.
//
// It speaks just enough HTTP/1.1 for that, because net/http's client costs more
// processor time for a request than a small handler does.
package loadgen

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Phase is a time of one rate.
type Phase struct {
	Rate     float64 // arrivals a second, Poisson
	Duration time.Duration
}

// Config says what to send.
type Config struct {
	URL     string
	Phases  []Phase
	Timeout time.Duration // after which a client gives up and hangs up
	MaxOpen int           // most connections; arrivals beyond fail at once
	Seed    uint64
}

// Answer is what became of one request.
type Answer struct {
	At     time.Duration // when it was due, since the start
	Took   time.Duration // from when it was due
	Status int16         // the HTTP status, or one of the following
}

// What there is instead of a status.
const (
	TimedOut int16 = -1
	NoConn   int16 = -2 // no connection could be opened
	Broken   int16 = -3 // the connection broke
)

var errNoConn = errors.New("loadgen: no connection")

// Run sends the phases and returns an answer for each request, in order.
func Run(c Config) ([]Answer, error) {
	g, err := newGenerator(c)
	if err != nil {
		return nil, err
	}
	g.start = time.Now()
	g.send(c)
	for g.swept < len(g.answers) {
		time.Sleep(5 * time.Millisecond)
		g.sweep()
	}
	g.close()
	return g.answers, nil
}

func newGenerator(c Config) (*generator, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("loadgen: the URL is %q, want http://host:port/path", c.URL)
	}
	total := 0.0
	for _, p := range c.Phases {
		total += p.Rate * p.Duration.Seconds()
	}
	return &generator{
		host:    u.Host,
		request: []byte("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\n\r\n"),
		maxOpen: int64(c.MaxOpen), timeout: c.Timeout,
		answers: make([]Answer, 0, int(total*1.1)+1000),
		idle:    make(chan *conn, c.MaxOpen),
	}, nil
}

type generator struct {
	host    string
	request []byte
	start   time.Time
	timeout time.Duration
	maxOpen int64
	open    atomic.Int64
	answers []Answer // grows only within its capacity: pointers stay
	swept   int      // all before it are decided
	flying  []*conn  // of each answer, its connection
	idle    chan *conn
	conns   []*conn
	readers sync.WaitGroup
}

// conn is a connection with at most one request on it.
type conn struct {
	net.Conn
	answer atomic.Pointer[Answer]
	dead   atomic.Bool
}

// send sends each request when it is due. Requests that are overdue, because
// the process did not run, go out at once: their time counts from when they
// were due.
func (g *generator) send(c Config) {
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	begin := time.Duration(0)
	for _, p := range c.Phases {
		end := begin + p.Duration
		due := begin
		for {
			due += time.Duration(rng.ExpFloat64() / p.Rate * 1e9)
			if due >= end || len(g.answers) == cap(g.answers) {
				break
			}
			if wait := due - time.Since(g.start); wait > 50*time.Microsecond {
				time.Sleep(wait)
			}
			g.ask(due)
			g.sweep()
		}
		begin = end
	}
}

func (g *generator) ask(due time.Duration) {
	g.answers = append(g.answers, Answer{At: due})
	a := &g.answers[len(g.answers)-1]
	var c *conn
	for c == nil {
		select {
		case c = <-g.idle:
			if c.dead.Load() {
				c = nil
				continue
			}
		default:
			c = g.dial()
			if c == nil {
				a.Status = NoConn
				g.flying = append(g.flying, nil)
				return
			}
			g.conns = append(g.conns, c)
			g.readers.Go(func() { g.read(c) })
		}
	}
	g.flying = append(g.flying, c)
	c.answer.Store(a)
	if _, err := c.Write(g.request); err != nil {
		g.settle(c, Broken)
	}
}

func (g *generator) dial() *conn {
	if g.open.Load() >= g.maxOpen {
		return nil
	}
	nc, err := net.Dial("tcp", g.host)
	if err != nil {
		return nil
	}
	g.open.Add(1)
	c := &conn{Conn: nc}
	return c
}

// read takes the answers off a connection until it ends.
func (g *generator) read(c *conn) {
	defer func() {
		g.settle(c, Broken)
		c.dead.Store(true)
		c.Close()
		g.open.Add(-1)
	}()
	r := reader{conn: c.Conn}
	for {
		status, last, err := r.answer()
		if err != nil {
			return
		}
		g.settle(c, int16(status))
		if last || c.dead.Load() {
			return
		}
		select {
		case g.idle <- c:
		default:
			return
		}
	}
}

// settle writes down what became of the request on c, once.
func (g *generator) settle(c *conn, status int16) {
	a := c.answer.Swap(nil)
	if a == nil {
		return
	}
	a.Took = time.Since(g.start) - a.At
	a.Status = status
}

// sweep gives up what has taken too long. All have the same patience, so the
// oldest comes first.
func (g *generator) sweep() {
	now := time.Since(g.start)
	for g.swept < len(g.answers) && now-g.answers[g.swept].At > g.timeout {
		if c := g.flying[g.swept]; c != nil && c.answer.CompareAndSwap(&g.answers[g.swept], nil) {
			a := &g.answers[g.swept]
			a.Took, a.Status = g.timeout, TimedOut
			c.dead.Store(true)
			c.Close()
		}
		g.flying[g.swept] = nil
		g.swept++
	}
}

// close hangs up everywhere and waits until nobody writes answers any more.
func (g *generator) close() {
	for _, c := range g.conns {
		c.Close()
	}
	g.readers.Wait()
}

// OK reports whether a is an answer with status 200 within slo.
func (a Answer) OK(slo time.Duration) bool {
	return a.Status == http.StatusOK && a.Took <= slo
}

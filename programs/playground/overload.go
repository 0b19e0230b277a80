package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// contender is a concurrency limit. A nil make is no limit.
type contender struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	make  func() adaptive.Strategy
}

var strategies = []contender{
	{"none", "None", nil},
	{"fixed", "Fixed", func() adaptive.Strategy { return adaptive.Fixed(2 * runtime.GOMAXPROCS(0)) }},
	{"default", "Default", func() adaptive.Strategy { return adaptive.Default() }},
	{"runqueue", "RunQueue", func() adaptive.Strategy { return adaptive.RunQueue() }},
	{"bbr", "BBR", func() adaptive.Strategy { return strategy.BBR() }},
	{"gradient2", "Gradient2", func() adaptive.Strategy { return strategy.Gradient2() }},
	{"vegas", "Vegas", func() adaptive.Strategy { return strategy.Vegas() }},
	{"aimd", "AIMD", func() adaptive.Strategy { return strategy.AIMD() }},
}

const (
	mostArrivals = 4000 // per second
	longestRun   = 2 * time.Minute
	leastLoad    = 25 // percent of the capacity
	mostLoad     = 500
)

// order is the configuration of the overload, from the page.
type order struct {
	Running  bool   `json:"running"`
	Strategy string `json:"strategy"`
	Load     int    `json:"load"` // percent of the capacity
}

func (o order) check() error {
	if o.Load < leastLoad || o.Load > mostLoad {
		return fmt.Errorf("load is %d, want %d to %d", o.Load, leastLoad, mostLoad)
	}
	if _, ok := strategyNamed(o.Strategy); !ok {
		return errors.New("strategy: unknown name")
	}
	return nil
}

func strategyNamed(name string) (contender, bool) {
	for _, s := range strategies {
		if s.Name == name {
			return s, true
		}
	}
	return contender{}, false
}

// overload is a server that burns processor time behind a limit in flight, and
// the clients that ask too much of it. They are a process of their own: within
// this one they would wait in the same queue for the processors as their own
// requests, and send less under more load.
type overload struct {
	Work     time.Duration // processor time of a request
	Capacity int           // requests a second that the processors could do

	panel    *panel
	handler  atomic.Pointer[http.Handler] // burn, behind the limit or not
	limiter  atomic.Pointer[adaptive.Limiter]
	inFlight peak
	url      string
	server   *http.Server

	mu    sync.Mutex // guards the fields below
	order order
	stop  func() // and wait; nil: not running
	runs  int    // started so far

	meter meter
}

// newOverload starts the server. Its work is chosen so that any machine can do
// about 400 requests a second, which the clients can exceed.
func newOverload(p *panel) (*overload, error) {
	cpus := runtime.GOMAXPROCS(0)
	work := min(max(5*time.Millisecond, time.Duration(cpus)*2500*time.Microsecond), 50*time.Millisecond)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &overload{
		Work: work, Capacity: cpus * int(time.Second/work), panel: p,
		url:   "http://" + listener.Addr().String(),
		order: order{Strategy: "none", Load: 200},
	}
	if err := o.limit(nil); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	o.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*o.handler.Load()).ServeHTTP(w, r) }),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that give up
	}
	go o.server.Serve(listener) // until Close
	return o, nil
}

// Close ends the clients and the server.
func (o *overload) Close() error {
	o.halt()
	return o.server.Close()
}

// limit puts a limiter in front of the handler; nil: none.
func (o *overload) limit(l *adaptive.Limiter) error {
	var h http.Handler = http.HandlerFunc(o.serve)
	if l != nil {
		h = httpmw.Limit(l, keyfunc.Global(), httpmw.WithName("overload"), httpmw.WithObserver(o.panel.Observe))(h)
	}
	o.limiter.Store(l)
	o.handler.Store(&h)
	return o.panel.follow(l)
}

func (o *overload) serve(w http.ResponseWriter, _ *http.Request) {
	o.inFlight.add(1)
	defer o.inFlight.add(-1)
	burn(o.Work)
	io.WriteString(w, "done\n")
}

// obey starts, changes or stops the load, one call at a time. A change of
// strategy begins with a limiter that has learnt nothing.
func (o *overload) obey(to order) error {
	if err := to.check(); err != nil {
		return err
	}
	o.halt()
	o.mu.Lock()
	defer o.mu.Unlock()
	if to.Strategy != o.order.Strategy || to.Running && !o.order.Running {
		l, err := limiterOf(to.Strategy)
		if err != nil {
			return err
		}
		if err := o.limit(l); err != nil {
			return err
		}
	}
	o.order = to
	if to.Running {
		return o.start()
	}
	return nil
}

func limiterOf(name string) (*adaptive.Limiter, error) {
	s, _ := strategyNamed(name)
	if s.make == nil {
		return nil, nil
	}
	return adaptive.New(s.make())
}

// start runs the clients. It wants the lock.
func (o *overload) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), longestRun)
	rate := min(o.Capacity*o.order.Load/100, mostArrivals)
	ended, err := runClients(ctx, o.url, rate, o.note)
	if err != nil {
		cancel()
		return err
	}
	o.stop = func() {
		cancel()
		<-ended
	}
	o.runs++
	run := o.runs
	go func() { // the time is over, or the clients came to grief
		<-ended
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.runs == run && !errors.Is(ctx.Err(), context.Canceled) { // else another run has begun, or does
			o.order.Running = false
		}
	}()
	return nil
}

// note makes a moment of a report of the clients.
func (o *overload) note(r report) {
	m := moment{
		InFlight: o.inFlight.take(), Waiting: r.Waiting, Answers: r.Answers,
		P50: percentile(r.Served, 50), P99: percentile(r.Served, 99),
	}
	if l := o.limiter.Load(); l != nil && l.Limit() < anyLimit {
		m.Limit = l.Limit()
	}
	o.mu.Lock()
	m.Strategy = o.order.Strategy
	o.mu.Unlock()
	o.meter.add(m)
}

// halt stops the clients and waits for them. The order stays, to show that it is
// not running any more.
func (o *overload) halt() {
	o.mu.Lock()
	stop := o.stop
	o.stop = nil
	o.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// rest is halt for good: the load does not come back by itself.
func (o *overload) rest() {
	o.halt()
	o.mu.Lock()
	o.order.Running = false
	o.mu.Unlock()
}

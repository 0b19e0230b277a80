package loadgen

import (
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOpenLoop: requests go out whether or not there are answers. The server
// answers none before it has all of them.
func TestOpenLoop(t *testing.T) {
	all := make(chan struct{})
	var came atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		<-all
		done(w, r)
	})
	c := shortly(url, 100)
	go func() {
		defer close(all)
		for sent := arrivals(c); came.Load() < int64(sent); {
			time.Sleep(time.Millisecond)
		}
	}()
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{200: arrivals(c)}, statuses(answers))
}

// arrivals is how many requests c makes: that depends on the seed alone.
func arrivals(c Config) (n int) {
	for range c.arrivals() {
		n++
	}
	return n
}

// TestNobodyAccepts: the schedule does not wait for connections to open either.
func TestNobodyAccepts(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	c := shortly("http://"+ln.Addr().String()+"/", 100)
	c.Timeout = 50 * time.Millisecond
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{TimedOut: arrivals(c)}, statuses(answers))
}

// TestSchedule: the answers come in the order in which the requests were due,
// at the rate of each phase.
func TestSchedule(t *testing.T) {
	c := shortly(serve(t, done), 0)
	c.Phases = []Phase{
		{Rate: 1000, Duration: 100 * time.Millisecond},
		{Rate: 0, Duration: 100 * time.Millisecond},
		{Rate: 4000, Duration: 100 * time.Millisecond},
	}
	answers, err := Run(c)
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(answers, func(a, b Answer) int { return int(a.At - b.At) }))
	count := map[int]int{}
	for _, a := range answers {
		require.Positive(t, a.Took)
		count[int(a.At/(100*time.Millisecond))]++
	}
	require.InDelta(t, 100, count[0], 40)
	require.Zero(t, count[1])
	require.InDelta(t, 400, count[2], 80)
	require.Len(t, count, 2)
}

// TestTimeoutHangsUp: a client that gives up closes its connection, and the
// server notices.
func TestTimeoutHangsUp(t *testing.T) {
	var came, hungUp atomic.Int64
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		came.Add(1)
		<-r.Context().Done()
		hungUp.Add(1)
	})
	c := shortly(url, 50)
	c.Timeout = 200 * time.Millisecond
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{TimedOut: arrivals(c)}, statuses(answers))
	for _, a := range answers {
		require.Equal(t, c.Timeout, a.Took)
		require.False(t, a.OK(time.Hour))
	}
	require.Positive(t, came.Load())
	require.Eventually(t, func() bool { return hungUp.Load() == came.Load() }, time.Minute, time.Millisecond)
}

// TestTimeoutWithoutArrivals: clients give up in time although no request is
// due for long after.
func TestTimeoutWithoutArrivals(t *testing.T) {
	c := shortly("http://127.0.0.1:1/", 1)
	c.Timeout = time.Millisecond
	g, err := newGenerator(c)
	require.NoError(t, err)
	g.start = time.Now()
	g.answers, g.flying = g.answers[:1], []*conn{{}}
	g.flying[0].answer.Store(&g.answers[0])
	g.waitFor(4 * patrol)
	require.Equal(t, []Answer{{Took: c.Timeout, Status: TimedOut}}, g.answers)
}

// TestMostOpen: no more connections than allowed, and the rest fails at once: the server
// answers none before all have been asked.
func TestMostOpen(t *testing.T) {
	all := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-all
		done(w, r)
	})
	c := shortly(url, 100)
	c.MaxOpen = 3
	g, err := newGenerator(c)
	require.NoError(t, err)
	g.start = time.Now()
	for due := range c.arrivals() {
		g.ask(due)
	}
	close(all)
	for g.undecided.Load() > 0 {
		time.Sleep(patrol)
	}
	g.close()
	require.Equal(t, map[int16]int{200: 3, NoConn: arrivals(c) - 3}, statuses(g.answers))
}

// TestReuse: a connection serves one request after the other.
func TestReuse(t *testing.T) {
	var opened atomic.Int64
	s := &http.Server{Handler: http.HandlerFunc(done), ConnState: func(_ net.Conn, to http.ConnState) {
		if to == http.StateNew {
			opened.Add(1)
		}
	}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go s.Serve(ln)
	defer s.Close()
	c := shortly("http://"+ln.Addr().String()+"/", 400)
	c.MaxOpen = 1
	answers, err := Run(c)
	require.NoError(t, err)
	require.EqualValues(t, 1, opened.Load())
	require.Greater(t, statuses(answers)[200], 1)
}

func TestConfig(t *testing.T) {
	good := shortly("http://127.0.0.1:1/", 1)
	for want, spoil := range map[string]func(*Config){
		`the URL is "https://127.0.0.1:1/"`: func(c *Config) { c.URL = "https://127.0.0.1:1/" },
		`the URL is "http://localhost/"`:    func(c *Config) { c.URL = "http://localhost/" },
		`the URL is ":"`:                    func(c *Config) { c.URL = ":" },
		"MaxOpen is 0":                      func(c *Config) { c.MaxOpen = 0 },
		"the timeout is 0s":                 func(c *Config) { c.Timeout = 0 },
		"a phase is -1 a second":            func(c *Config) { c.Phases = []Phase{{Rate: -1, Duration: 1}} },
		"a phase is NaN a second":           func(c *Config) { c.Phases = []Phase{{Rate: math.NaN(), Duration: 1}} },
		"a phase is +Inf a second":          func(c *Config) { c.Phases = []Phase{{Rate: math.Inf(1), Duration: 1}} },
		"a second for -1ns":                 func(c *Config) { c.Phases = []Phase{{Duration: -1}} },
	} {
		c := good
		spoil(&c)
		_, err := Run(c)
		require.ErrorContains(t, err, want)
	}
	_, err := Closed("nowhere", 1, time.Second)
	require.ErrorContains(t, err, `the URL is "nowhere"`)
	_, err = Closed(good.URL, 0, time.Second)
	require.ErrorContains(t, err, "MaxOpen is 0")
}

// TestOpenBefore: the connections are there when the load begins, and serve all of it.
func TestOpenBefore(t *testing.T) {
	var opened atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(done))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := shortly(s.URL+"/", 100)
	c.Open = 100
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{200: len(answers)}, statuses(answers))
	require.Equal(t, int64(100), opened.Load())
	c.Open = c.MaxOpen + 1
	_, err = Run(c)
	require.EqualError(t, err, "loadgen: Open is 1001, want 0 to MaxOpen, 1000")
	s.Close()
	c.Open = 1
	_, err = Run(c)
	require.ErrorContains(t, err, "before the load")
}

// TestBursts: requests come at once, at even distances, from either generator.
func TestBursts(t *testing.T) {
	c := shortly(serve(t, done), 0)
	c.Phases = []Phase{{Rate: 1000, Duration: 101 * time.Millisecond, Burst: 20}}
	answers, err := Run(c)
	require.NoError(t, err)
	for _, all := range [][]Answer{answers, Paced(c, func() int16 { return 200 })} {
		require.Equal(t, map[int16]int{200: 100}, statuses(all))
		due := map[time.Duration]int{}
		for _, a := range all {
			due[a.At]++
		}
		require.Equal(t, map[time.Duration]int{20e6: 20, 40e6: 20, 60e6: 20, 80e6: 20, 100e6: 20}, due)
	}
}

package httpmw_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

const (
	policyField = "RateLimit-Policy"
	limitField  = "RateLimit"
)

// scripted is a limiter with a fixed answer.
type scripted struct {
	decision    algo.Decision
	description algo.Description
	mute        bool // cannot describe itself
	err         error

	mu       sync.Mutex
	keys     []string
	costs    []int64
	outcomes []algo.Outcome
}

func (s *scripted) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.costs = append(s.keys, key), append(s.costs, n)
	if s.err != nil {
		return algo.Lease{}, s.err
	}
	return algo.NewLease(s.decision, s, algo.Handle{Key: key, N: n}), nil
}

func (s *scripted) Release(_ algo.Handle, o algo.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes = append(s.outcomes, o)
}

func (s *scripted) Settle(algo.Handle, int64) {}

func (s *scripted) About() algo.Description {
	if s.mute {
		return algo.Description{NeedsRelease: true}
	}
	return s.description
}

// rated is a scripted rate limiter; httpmw does not wrap the writer for one.
type rated struct{ scripted }

func (*rated) SetRate(algo.Rate) error { return nil }

// admitting returns a limiter with 10 per second that lets everything pass.
func admitting() *scripted {
	return &scripted{
		decision:    algo.Decision{Allowed: true, Limit: 10, Remaining: 7, NextAfter: 100 * time.Millisecond},
		description: algo.Description{Quota: 10, Window: time.Second},
	}
}

// denying returns a limiter that denies for reason.
func denying(reason algo.Reason, retryAfter time.Duration) *scripted {
	s := admitting()
	s.decision = algo.Decision{Reason: reason, Limit: 10, RetryAfter: retryAfter, NextAfter: 100 * time.Millisecond}
	return s
}

// slots is an exact in-flight limiter, per key, without a queue.
type slots struct {
	most int64
	mu   sync.Mutex
	used map[string]int64
	sum  map[algo.Outcome]int
}

func newSlots(most int64) *slots {
	return &slots{most: most, used: map[string]int64{}, sum: map[algo.Outcome]int{}}
}

func (s *slots) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := algo.Decision{Limit: s.most}
	if s.used[key]+n > s.most {
		d.Reason, d.Remaining = algo.Quota, s.most-s.used[key]
		if key == "" {
			d.Reason = algo.Overload
		}
		return algo.NewLease(d, nil, algo.Handle{}), nil
	}
	s.used[key] += n
	d.Allowed, d.Remaining = true, s.most-s.used[key]
	return algo.NewLease(d, s, algo.Handle{Key: key, N: n}), nil
}

func (s *slots) Release(h algo.Handle, o algo.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[h.Key] -= h.N
	s.sum[o]++
}

func (s *slots) Settle(algo.Handle, int64) {}

func (s *slots) About() algo.Description {
	return algo.Description{Quota: s.most, Unit: algo.ConcurrentRequests, NeedsRelease: true}
}

// inFlight is the number of units held, over all keys.
func (s *slots) inFlight() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, used := range s.used {
		n += used
	}
	return n
}

func (s *slots) released(o algo.Outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum[o]
}

func bucket(t testing.TB, r algo.Rate, opts ...algo.Option) *algo.RateLimiter {
	t.Helper()
	l, err := algo.NewTokenBucket(r, opts...)
	require.NoError(t, err)
	return l
}

func key(k string) keyfunc.HTTP {
	return func(*http.Request) (string, error) { return k, nil }
}

func failingKey(err error) keyfunc.HTTP {
	return func(*http.Request) (string, error) { return "", err }
}

// ok is a handler that answers 200 and "served".
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("served")) })

func unreachable(t testing.TB) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
}

func get(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// serve sends r through h and returns the answer.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// ask sends one GET through a middleware with l.
func ask(l algo.Limiter, opts ...httpmw.Option) *httptest.ResponseRecorder {
	return serve(httpmw.Limit(l, key("k"), opts...)(ok), get())
}

// anonymous hides the type of h.
func anonymous(h http.Handler) http.Handler { return http.HandlerFunc(h.ServeHTTP) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// protocols are those that servers are started with.
var protocols = []string{"HTTP/1.1", "HTTP/2", "h2c"}

var quietLog = log.New(io.Discard, "", 0)

// start serves h on a real socket until the test ends.
func start(t *testing.T, protocol string, h http.Handler, logs ...io.Writer) (url string, client *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.MultiWriter(logs...), "", 0)
	t.Cleanup(s.Close)
	switch protocol {
	case "HTTP/1.1":
		s.Start()
	case "HTTP/2":
		s.EnableHTTP2 = true
		s.StartTLS()
	case "h2c":
		only := new(http.Protocols)
		only.SetUnencryptedHTTP2(true)
		s.Config.Protocols = only
		s.Start()
		transport := &http.Transport{Protocols: only}
		t.Cleanup(transport.CloseIdleConnections)
		return s.URL, &http.Client{Transport: transport}
	}
	return s.URL, s.Client()
}

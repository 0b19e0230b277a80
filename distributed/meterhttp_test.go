package distributed_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/metered"
)

// tokenStream is a response whose events are charged to a limit on Redis: 40 units are
// reserved by the middleware, the rest in blocks of 50.
type tokenStream struct {
	limiter  *distributed.Limiter
	events   int   // of 10 units each; 0: until the client is gone
	reported int64 // by the upstream at the end; 0: nothing
	most     int64

	used  chan int64 // by the handler, when it has ended
	ended error      // of the stream, before used is sent
}

func (s *tokenStream) serve(t *testing.T) *httptest.Server {
	s.used = make(chan int64, 1)
	limit := httpmw.Limit(s.limiter, func(*http.Request) (string, error) { return "k", nil },
		httpmw.WithName("tokens"), httpmw.WithLeaseInContext(), httpmw.WithCost(func(*http.Request) int64 { return 40 }))
	server := httptest.NewUnstartedServer(limit(s))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func (s *tokenStream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	m := meter.From(r.Context(), "tokens", 50)
	out := metered.New(r.Context(), w, metered.Metering{Meter: m, Most: s.most, Units: func([]byte) int64 { return 10 }})
	defer func() {
		_ = out.Close()
		s.used <- m.Used()
	}()
	for n := 0; n < s.events || s.events == 0; n++ {
		if _, s.ended = fmt.Fprintf(out, "data: %d\n\n", n); s.ended != nil {
			_, _ = io.WriteString(w, "event: limit\n\n")
			return
		}
		if out.Flush(); s.events == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if s.reported > 0 {
		m.Settle(s.reported)
	}
}

// left is the number of units of the key after the charges in transit have
// arrived.
func (s *tokenStream) left(t *testing.T, want int64) {
	t.Helper()
	left := func() int64 { return remote(t, s.limiter, "k", 0).Remaining }
	require.Eventually(t, func() bool { return left() == want }, patient, time.Millisecond, "%d are left, want %d", left(), want)
}

// TestW2_StreamsOverHTTP: over HTTP/1.1 and HTTP/2, with the limit on Redis, a stream is
// settled at its end, when its client hangs up, and when it is denied in the middle.
func TestW2_StreamsOverHTTP(t *testing.T) {
	store, redis := onRedis(t, distributed.WithInstances(1)) // no heartbeats
	require.NoError(t, store.Ping(ctx))                      // and no further questions
	for proto := 1; proto <= 2; proto++ {
		stream := func(name string, s tokenStream) (*tokenStream, *http.Response) {
			l, err := store.TokenBucket(fmt.Sprint(name, proto), slow, algo.Burst(200))
			require.NoError(t, err)
			s.limiter = l
			server := s.serve(t)
			client := server.Client()
			if proto == 1 {
				client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
				client.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
			}
			answer, err := client.Get(server.URL)
			require.NoError(t, err)
			require.Equal(t, proto, answer.ProtoMajor)
			t.Cleanup(func() { _ = answer.Body.Close() })
			return &s, answer
		}
		body := func(answer *http.Response) string { return string(must[[]byte](t)(io.ReadAll(answer.Body))) }

		calls := evalCalls(redis)
		s, answer := stream("counted", tokenStream{events: 12})
		require.Equal(t, 12, strings.Count(body(answer), "data: "))
		require.EqualValues(t, 120, <-s.used)
		s.left(t, 80)
		require.LessOrEqual(t, evalCalls(redis)-calls, 1+2+2+2, "the first charge, two blocks, the rest of these, two peeks")

		s, answer = stream("reported", tokenStream{events: 12, reported: 95})
		body(answer)
		require.EqualValues(t, 95, <-s.used)
		s.left(t, 105)

		s, answer = stream("hung up", tokenStream{})
		lines := bufio.NewScanner(answer.Body)
		for range 6 {
			require.True(t, lines.Scan())
		}
		require.NoError(t, answer.Body.Close())
		used := <-s.used
		require.Error(t, s.ended)
		require.Positive(t, used)
		s.left(t, max(200-used, 0))

		s, answer = stream("denied", tokenStream{events: 100})
		text := body(answer)
		require.True(t, strings.HasSuffix(text, "data: 20\n\nevent: limit\n\n"), text)
		require.EqualValues(t, 210, <-s.used, "one chunk more than 200")
		var denied *metered.Denied
		require.True(t, errors.As(s.ended, &denied))
		require.Equal(t, algo.Quota, denied.Decision.Reason)
		s.left(t, 0)
		require.False(t, remote(t, s.limiter, "k", 1).Allowed)

		s, answer = stream("denied, the most is known", tokenStream{events: 100, most: 10})
		text = body(answer)
		require.True(t, strings.HasSuffix(text, "data: 19\n\nevent: limit\n\n"), text)
		require.EqualValues(t, 200, <-s.used)
		require.False(t, errors.Is(s.ended, context.Canceled))
		s.left(t, 0)
	}
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/internal/serverwait"
	"github.com/sluice-go/sluice/keyfunc"
)

// The wait is the longest t of the limits with r=0. A field that is not
// a list of strings says nothing at all: a part of it may say the opposite of
// the whole.
func TestWaitUntilMore(t *testing.T) {
	for field, want := range map[string]time.Duration{
		`"a";r=0;t=7`:              7 * time.Second,
		`"a";r=0;t=7, "b";r=0;t=9`: 9 * time.Second,
		`"a";r=0;t=7, "b";r=1;t=9`: 7 * time.Second,
		`"a\"\\";r=x;r=0;t=7;pk=:aGk=:;x=?1;y=tok/en;z="s";d=-1.5;when=@1;v;t=8 , "b";r=2.5;t=9,	"c";t=9`: 8 * time.Second,
		`"a";r=-1;t=7`:               7 * time.Second,
		`"a";r=0;t=-7`:               0,
		`"a";r=0`:                    0,
		`"a";t=7`:                    0,
		`"a";r=0.0;t=7`:              0,
		`"a";r;t=7`:                  0,
		`"a";r=0;t=999999999999999`:  serverwait.Longest,
		`"a";r=0;t=9999999999999999`: 0,
		`a;r=0;t=7`:                  7 * time.Second,
		`("a");r=0;t=7`:              0,
		`"a";r=0;t=7, b;r=1`:         7 * time.Second,
		`?1;r=0;t=7`:                 0,
		`"a";r=0;t=7,`:               0,
		`"a;r=0;t=7`:                 0,
		`"é";r=0;t=7`:                0,
		"":                           0,
		strings.Repeat(`"a";r=0;t=7,`, 1000) + `"a"`: 0,
	} {
		require.Equal(t, want, client.WaitUntilMore(field), "%.80q", field)
	}
}

// Lines of servers and proxies that speak different drafts do not hide one another.
func TestWaitUntilMoreOnSeveralLines(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  time.Duration
	}{
		{[]string{`"a";r=0;t=7`, `b;r=0;t=9`}, 9 * time.Second},
		{[]string{`limit=10, remaining=0, reset=9`, `"a";r=0;t=7`}, 9 * time.Second},
		{[]string{`"a";r=0;t=7`, `limit=10, remaining=5, reset=9`}, 7 * time.Second},
		{[]string{`limit=10`, `remaining=0, reset=9`}, 9 * time.Second},
		{[]string{`"a";r=0;t=7`, `"a`}, 7 * time.Second},
		{[]string{`"a";r=0;t=7`, strings.Repeat("a", 4096)}, 0},
	} {
		require.Equal(t, c.want, client.WaitUntilMore(c.lines...), "%.80q", c.lines)
	}
}

func TestS3_WaitUntilMore(t *testing.T) {
	alphabet := []string{`"a"`, `"`, `\`, ";", "r", "t", "=", "0", "17", "-", ".", ",", " ", "\t", ":", "YQ==", "?1", "x", "*", "é", "\x00", `;r=0`, `;t=5`, `, `, "(", ")", "@", "%"}
	rapid.Check(t, func(t *rapid.T) {
		field := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 12).Draw(t, "field"), "")
		d := client.WaitUntilMore(field)
		require.True(t, 0 <= d && d <= serverwait.Longest)
	})
}

// However many servers ask to wait, the memory is bounded.
func TestTransportForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := 100
		server := roundTrip(func(r *http.Request) (*http.Response, error) {
			wait++
			return reply(429, "Retry-After", fmt.Sprint(wait))(r)
		})
		tr := client.Transport(server, unlimited(t), keyfunc.Global(), client.WithMaxServers(2))
		took := func(host string) time.Duration {
			start := time.Now()
			_, err := tr.RoundTrip(outgoing(t.Context(), "http://"+host))
			require.NoError(t, err)
			return time.Since(start)
		}
		for _, host := range []string{"a", "b", "c"} { // 101, 102, 103 s
			require.Zero(t, took(host))
		}
		require.Zero(t, took("a"), "it was the first to end, and forgotten; now b is")
		require.Equal(t, 103*time.Second, took("c"))
		require.Zero(t, took("b"))
	})
}

func TestTransportHeedsTheServer(t *testing.T) {
	date := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
	later := time.Date(2000, 1, 1, 0, 0, 7, 0, time.UTC).Format(http.TimeFormat)
	for _, row := range []struct {
		name   string
		server roundTrip
		want   time.Duration
	}{
		{"429", reply(429, "Retry-After", "7"), 7 * time.Second},
		{"503", reply(503, "Retry-After", "7"), 7 * time.Second},
		{"200", reply(200, "Retry-After", "7"), 0},
		{"exact", reply(429, "Retry-After", "7", "Retry-After-Ms", "6100", "RateLimit", `"a";r=0;t=7`), 6100 * time.Millisecond},
		{"exact, long", reply(429, "Retry-After", "7", "Retry-After-Ms", "22708000"), 22708 * time.Second},
		{"exact, a part of a millisecond", reply(429, "Retry-After-Ms", "500.5"), 500500 * time.Microsecond},
		{"part of a second", reply(429, "Retry-After", "0.5"), 500 * time.Millisecond},
		{"seconds and a part", reply(503, "Retry-After", "299.997"), 299997 * time.Millisecond},
		{"a fraction of zeros", reply(429, "Retry-After", "120.0"), 2 * time.Minute},
		{"two lines", reply(429, "Retry-After", "1", "Retry-After", "60"), time.Minute},
		{"two points", reply(429, "Retry-After", "1.2.3"), 0},
		{"a point", reply(429, "Retry-After", "."), 0},
		{"an exponent", reply(429, "Retry-After", "1e3"), 0},
		{"exact, nonsense", reply(429, "Retry-After", "7", "Retry-After-Ms", "-1"), 7 * time.Second},
		{"date", reply(429, "Retry-After", later), 7 * time.Second},
		{"date by the server's clock", reply(429, "Retry-After", later, "Date", date), 7 * time.Second},
		{"date of RFC 850", reply(429, "Retry-After", "Saturday, 01-Jan-00 00:00:07 GMT"), 7 * time.Second},
		{"date of asctime", reply(429, "Retry-After", "Sat Jan  1 00:00:07 2000"), 7 * time.Second},
		{"date in the past", reply(429, "Retry-After", "Sat, 01 Jan 1990 00:00:00 GMT"), 0},
		{"long", reply(429, "Retry-After", "22708"), 22708 * time.Second},
		{"too long for a number", reply(429, "Retry-After", "99999999999999999999"), serverwait.Longest},
		{"too long for a time", reply(429, "Retry-After", "9999999999999"), serverwait.Longest},
		{"exact, too long for a number", reply(429, "Retry-After", "7", "Retry-After-Ms", "99999999999999999999"), serverwait.Longest},
		{"negative", reply(429, "Retry-After", "-7"), 0},
		{"nonsense", reply(429, "Retry-After", "soon"), 0},
		{"absent", reply(429), 0},
		{"nothing remains", reply(200, "RateLimit", `"a";r=0;t=7`), 7 * time.Second},
		{"nothing is available, by the next draft", reply(200, "RateLimit", `"a";a=0;w=30`), 30 * time.Second},
		{"something is available, by the next draft", reply(200, "RateLimit", `"a";a=1;w=30`), 0},
		{"both drafts", reply(200, "RateLimit", `"a";r=0;t=7;a=0;w=30`), 7 * time.Second},
		{"something remains", reply(200, "RateLimit", `"a";r=1;t=7`), 0},
		{"nothing remains of one of two", reply(200, "RateLimit", `"a";r=1;t=70, "b";r=0;t=7`), 7 * time.Second},
		{"two lines", reply(200, "RateLimit", `"a";r=1;t=70`, "RateLimit", `"b";r=0;t=7`), 7 * time.Second},
		{"the longer one", reply(429, "RateLimit", `"a";r=0;t=7`, "Retry-After", "3"), 7 * time.Second},
		{"403", reply(403, "Retry-After", "7"), 7 * time.Second},
		{"403 without a wait", reply(403), 0},
		{"draft 7", reply(200, "RateLimit", "limit=100, remaining=0, reset=7"), 7 * time.Second},
		{"draft 7, on lines", reply(200, "RateLimit", "limit=100;w=60, remaining=0", "RateLimit", "reset=7"), 7 * time.Second},
		{"draft 7, something remains", reply(200, "RateLimit", "limit=100, remaining=1, reset=7"), 0},
		{"draft 7, broken", reply(200, "RateLimit", "limit=100, remaining=0, reset=7,"), 0},
		{"draft 6", reply(200, "RateLimit-Limit", "100", "RateLimit-Remaining", "0", "RateLimit-Reset", "7"), 7 * time.Second},
		{"draft 6, something remains", reply(200, "RateLimit-Limit", "100", "RateLimit-Remaining", "1", "RateLimit-Reset", "7"), 0},
		{"draft 6, from a cache", reply(200, "Age", "1", "RateLimit-Remaining", "0", "RateLimit-Reset", "7"), 0},
		{"broken field", reply(200, "RateLimit", `"a";r=0;t=7, !`), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := client.Transport(row.server, unlimited(t), keyfunc.Header("X-User"))
				took := func(url, user string) time.Duration {
					start := time.Now()
					r := outgoing(t.Context(), url)
					r.Header.Set("X-User", user)
					_, err := tr.RoundTrip(r)
					require.NoError(t, err)
					return time.Since(start)
				}
				require.Zero(t, took("http://a/", "u"))
				require.Zero(t, took("http://b/", "u"), "another host")
				require.Zero(t, took("http://a/", "v"), "another key")
				require.Equal(t, row.want, took("http://a/1", "u"))
			})
		})
	}
}

// The hook reads the server's own fields, in addition to the standard ones.
func TestTransportServerWait(t *testing.T) {
	date := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
	for _, row := range []struct {
		name   string
		server roundTrip
		want   time.Duration
	}{
		{"a quota of tokens", reply(200, "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6.5s"), 6500 * time.Millisecond},
		{"tokens remain", reply(200, "x-ratelimit-remaining-tokens", "9", "x-ratelimit-reset-tokens", "6.5s"), 0},
		{"by the server's clock", reply(200, "Date", date, "example-ratelimit-requests-remaining", "0", "example-ratelimit-requests-reset", "2000-01-01T00:00:03Z"), 3 * time.Second},
		{"another status", reply(529, "Retry-After", "5"), 5 * time.Second},
		{"another status, exact", reply(529, "Retry-After", "5", "Retry-After-Ms", "4100"), 4100 * time.Millisecond},
		{"not a failure", reply(200, "Retry-After", "5"), 0},
		{"the longer one", reply(429, "Retry-After-Ms", "2000", "x-ratelimit-remaining", "0", "x-ratelimit-reset", "9"), 9 * time.Second},
		{"a day", reply(200, "x-ratelimit-remaining", "0", "x-ratelimit-reset", "86400"), 24 * time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, hook := range []bool{true, false} {
					opts := []client.Option{client.WithServerWait(client.QuotaWait)}
					tr := client.Transport(row.server, unlimited(t), keyfunc.Global(), opts[:map[bool]int{true: 1}[hook]]...)
					start := time.Now()
					for range 2 {
						_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
						require.NoError(t, err)
					}
					if hook {
						require.Equal(t, row.want, time.Since(start))
					} else if row.name != "the longer one" {
						require.Zero(t, time.Since(start), "without the hook")
					}
				}
			})
		})
	}
	require.Panics(t, func() { client.Transport(nil, unlimited(t), keyfunc.Global(), client.WithServerWait(nil)) })
}

// Requests that wait for the limiter when the server asks to wait do not start
// together afterwards: they keep the limit.
func TestTransportKeepsTheLimitAfterAServerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var starts []time.Time
		server := roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if starts = append(starts, time.Now()); len(starts) == 1 {
				time.Sleep(50 * time.Millisecond) // the others are in line meanwhile
				return reply(429, "Retry-After", "1")(r)
			}
			return reply(200)(r)
		})
		tr := client.Transport(server, bucket(t, algo.PerSecond(10), algo.Burst(1)), keyfunc.Global())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Len(t, starts, 20)
		require.GreaterOrEqual(t, starts[1].Sub(starts[0]), time.Second)
		for i := 2; i < len(starts); i++ {
			require.GreaterOrEqual(t, starts[i].Sub(starts[i-1]), 100*time.Millisecond, "start %d", i)
		}
		require.LessOrEqual(t, starts[19].Sub(starts[0]), 3*time.Second, "the wait took nothing from the limit")
	})
}

func TestTransportCannotWaitForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(t, algo.PerHour(2))
		tr := client.Transport(reply(429, "Retry-After", "60"), l, keyfunc.Global())
		_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		start := time.Now()
		_, err = tr.RoundTrip(outgoing(ctx, "http://a/"))
		require.ErrorIs(t, err, algo.ErrWait)
		require.ErrorContains(t, err, "1m0s")
		require.Zero(t, time.Since(start))
		lease, err := l.Acquire(t.Context(), "", 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, lease.Remaining, "not charged")
	})
}

// Requests that wait for their limit already when a server asks for 2 s wait for it too.
func TestQueuedRequestsHeedTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var until time.Time
		early, status := 0, http.StatusOK
		server := roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Before(until) {
				early++
			}
			if status = http.StatusOK + http.StatusTooManyRequests - status; status == http.StatusOK {
				return reply(status)(r)
			}
			until = time.Now().Add(2 * time.Second)
			return reply(status, "Retry-After", "2")(r)
		})
		tr := client.Transport(server, bucket(t, algo.PerSecond(10), algo.Burst(1), algo.MaxWait(time.Minute)), keyfunc.Global())
		start := time.Now()
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
				require.NoError(t, err)
			})
		}
		group.Wait()
		require.Zero(t, early)
		require.GreaterOrEqual(t, time.Since(start), 8*time.Second)
	})
}

// Requests that are not limited here wait for the server too.
func TestTransportHeedsTheServerUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := client.Transport(reply(429, "Retry-After", "7"), admitting(), failingKey(errors.New("broken")), client.WithFailOpen())
		start := time.Now()
		for range 2 {
			_, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
			require.NoError(t, err)
		}
		require.Equal(t, 7*time.Second, time.Since(start))
		_, err := tr.RoundTrip(outgoing(t.Context(), "http://A/"))
		require.NoError(t, err)
		require.Equal(t, 14*time.Second, time.Since(start), "one host in any case")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = tr.RoundTrip(outgoing(ctx, "http://a/"))
		require.ErrorIs(t, err, algo.ErrWait)
	})
}

// TestAnswersFromACache: the fields of an answer that a cache has kept are about another call.
// Retry-After of a denial is obeyed, and the fields of a cache that passes the server's answer on.
func TestAnswersFromACache(t *testing.T) {
	for _, c := range []struct {
		status int
		age    string
		fields []string
		waits  bool
	}{
		{200, "30", []string{"Ratelimit", `"a";r=0;t=3600`, "Ratelimit-Policy", `"a";q=1;w=3600`}, false},
		{200, "30", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "3600"}, false},
		{404, "30", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "3600"}, false},
		{200, "0", []string{"Ratelimit", `"a";r=0;t=3600`}, true},
		{200, "00", []string{"Ratelimit", `"a";r=0;t=3600`}, true},
		{200, "", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "3600"}, true},
		{429, "30", []string{"Retry-After", "3600"}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := reply(c.status, append(c.fields, "Age", c.age)...)
			tr := client.Transport(server, unlimited(t), keyfunc.Global(), client.WithServerWait(client.QuotaWait))
			start := time.Now()
			for range 2 {
				resp, err := tr.RoundTrip(outgoing(t.Context(), "http://a"))
				if err == nil {
					require.NoError(t, resp.Body.Close())
				}
			}
			require.Equal(t, c.waits, time.Since(start) > 0, "%+v", c)
		})
	}
}

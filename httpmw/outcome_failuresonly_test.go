package httpmw_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// Ten correct logins at once, over real connections, are all admitted without a
// ban; five wrong ones then cause one.
func TestLoginFailuresOnly(t *testing.T) {
	var together sync.WaitGroup
	together.Add(10)
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("password") {
		case "wrong":
			w.WriteHeader(http.StatusUnauthorized)
		case "together":
			together.Done()
			together.Wait() // all are in flight
		}
	})
	bucket := bucket(t, algo.PerHour(5))
	ban := algo.Must(guard.NewBan(guard.FailuresOnly(bucket), algo.PerMinute(2), time.Hour, time.Hour))
	server := httptest.NewServer(httpmw.Limit(ban, keyfunc.ClientIP())(login))
	defer server.Close()
	status := func(password string) int {
		resp, err := http.Get(server.URL + "/?password=" + password)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	codes := make(chan int, 10)
	for range 10 {
		go func() { codes <- status("together") }()
	}
	for range 10 {
		require.Equal(t, 200, <-codes)
	}
	for range 5 {
		require.Equal(t, 401, status("wrong"))
	}
	require.Equal(t, 429, status("right"))
	require.Zero(t, ban.Banned("127.0.0.1"))
	require.Equal(t, 429, status("right"))
	require.NotZero(t, ban.Banned("127.0.0.1"), "two denials")
}

// WithRefundIf defines the statuses that are no failures.
func TestFailuresOnlyOfSomeStatus(t *testing.T) {
	limited := bucket(t, algo.PerHour(2))
	answer := 404
	h := httpmw.Limit(guard.FailuresOnly(limited), key("k"),
		httpmw.WithRefundIf(func(status int) bool { return status != http.StatusUnauthorized }))(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
	for range 5 {
		require.Equal(t, 404, serve(h, get()).Code)
	}
	answer = 401
	for _, want := range []int{401, 401, 429} {
		require.Equal(t, want, serve(h, get()).Code)
	}
}

// A ban and a quota differ in the answer and in the event.
func TestBansAreNoQuotas(t *testing.T) {
	ban := algo.Must(guard.NewBan(bucket(t, algo.PerHour(1)), algo.PerMinute(2), time.Hour, time.Hour))
	for name, row := range map[string]struct {
		l     algo.Limiter
		retry bool
	}{"ban": {ban, true}, "for ever": {algo.DenyAll(), false}} {
		var seen events
		h := httpmw.Limit(row.l, key("k"), httpmw.WithName("p"), seen.observe())(ok)
		serve(h, get())
		serve(h, get())
		for _, w := range []*httptest.ResponseRecorder{
			serve(h, get()), serve(httpmw.Limits([]httpmw.Policy{{Name: "p", Limiter: row.l, Key: key("k")}, {Name: "q", Limiter: admitting(), Key: key("k")}})(ok), get()),
		} {
			require.Equal(t, 429, w.Code, name)
			require.Equal(t, "The caller is banned", problemOf(t, w).Title, name)
			require.Equal(t, row.retry, w.Header().Get("Retry-After") != "", name)
		}
		require.Equal(t, algo.Banned, seen[2].Decision.Reason, name)
	}
}

// A correct login is no failure, however slowly its body comes or its answer is read, and
// neither is a stream.
func TestSlowLoginsAreNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := bucket(t, algo.PerHour(3))
		h := httpmw.Limit(guard.FailuresOnly(failures), key("k"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/events" {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			_, _ = io.WriteString(w, "welcome")
		}))
		for _, path := range []string{"/login", "/events"} {
			for range 5 {
				body := slowly(func(p []byte) (int, error) { time.Sleep(time.Second); return 0, io.EOF })
				require.Equal(t, 200, serve(h, httptest.NewRequest(http.MethodPost, path, body)).Code)
			}
			lease, err := failures.Acquire(t.Context(), "k", 0)
			require.NoError(t, err)
			require.EqualValues(t, 3, lease.Remaining, path)
		}
	})
}

type slowly func(p []byte) (int, error)

func (s slowly) Read(p []byte) (int, error) { return s(p) }

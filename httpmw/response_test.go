package httpmw_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

const (
	quotaProblem    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	capacityProblem = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	neverProblem    = "https://pkg.go.dev/github.com/sluice-go/sluice/algo#Never"
)

type problem struct {
	Type, Title string
	Status      int
	Violated    []string `json:"violated-policies"`
}

func problemOf(t *testing.T, w *httptest.ResponseRecorder) (p problem) {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Result().Header.Get("Content-Type"))
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&p))
	require.Equal(t, w.Code, p.Status)
	require.NotEmpty(t, p.Title)
	return p
}

func TestDenials(t *testing.T) {
	for _, row := range []struct {
		name   string
		l      algo.Limiter
		key    keyfunc.HTTP
		status int
		kind   string
	}{
		{"quota", denying(algo.Quota, time.Second), key("k"), 429, quotaProblem},
		{"never", denying(algo.Never, algo.Forever), key("k"), 429, neverProblem},
		{"overload", denying(algo.Overload, 0), key("k"), 503, capacityProblem},
		{"banned for ever", denying(algo.Banned, algo.Forever), key("k"), 429, "about:blank"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := serve(httpmw.Limit(row.l, row.key, httpmw.WithName("p"))(unreachable(t)), get())
			require.Equal(t, row.status, w.Code)
			require.Equal(t, "no-store", w.Result().Header.Get("Cache-Control"))
			require.Equal(t, "nosniff", w.Result().Header.Get("X-Content-Type-Options"))
			require.NotEmpty(t, w.Result().Header.Get(limitField))
			p := problemOf(t, w)
			require.Equal(t, row.kind, p.Type)
			require.Equal(t, []string{"p"}, p.Violated)
		})
	}
}

// TestDenialsForLackOfCapacity: 503, however the limit is composed and whatever the key.
func TestDenialsForLackOfCapacity(t *testing.T) {
	capacity, slots := algo.Must(adaptive.New(adaptive.Fixed(10))), algo.Must(adaptive.PerKey(5))
	table := algo.Must(adaptive.PerKey(5, adaptive.WithMaxKeys(1)))
	hold := func(l algo.Limiter, key string, n int64) {
		lease, err := l.Acquire(t.Context(), key, n)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
	}
	hold(capacity, "other", 10)
	hold(slots, "busy", 5)
	hold(slots, "", 5)
	hold(table, "other", 1)
	for name, row := range map[string]struct {
		l      algo.Limiter
		key    string
		status int
	}{
		"capacity":                        {capacity, "k", 503},
		"capacity behind slots per key":   {algo.All(slots, capacity), "k", 503},
		"the other way round":             {algo.All(capacity, slots), "k", 503},
		"in a switch":                     {algo.NewSwitch(algo.All(slots, capacity)), "k", 503},
		"the key's slots alone":           {slots, "busy", 429},
		"the key's slots before capacity": {algo.All(slots, algo.Must(adaptive.New(adaptive.Fixed(10)))), "busy", 429},
		"the slots of the empty key":      {slots, "", 503},
		"too many keys":                   {table, "k", 503},
		"too many keys, before room":      {algo.All(table, algo.Must(adaptive.New(adaptive.Fixed(10)))), "k", 503},
	} {
		require.Equal(t, row.status, serve(httpmw.Limit(row.l, key(row.key))(unreachable(t)), get()).Code, name)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, row := range []struct {
		name        string
		retry, next time.Duration
		least, most int
	}{
		{"zero", 0, 0, 2, 2},
		{"a nanosecond", 1, 0, 1, 1},
		{"a second", time.Second, 0, 2, 2},
		{"more than a second", time.Second + 1, 0, 2, 2},
		{"spread by 20 %", 10 * time.Second, 0, 11, 12},
		{"spread by at most 5 s", time.Hour, 0, 3601, 3605},
		{"sooner than anything could start at once", time.Second, 9500 * time.Millisecond, 2, 2},
		{"half a century", 50 * 365 * 24 * time.Hour, 0, 1576800001, 1576800005},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := denying(algo.Quota, row.retry)
			l.decision.NextAfter = row.next
			seen := map[int]bool{}
			for range 200 {
				w := ask(l)
				require.Len(t, w.Result().Header.Values("Retry-After"), 1)
				s, err := strconv.Atoi(w.Result().Header.Get("Retry-After"))
				require.NoError(t, err)
				require.GreaterOrEqual(t, s, row.least)
				require.LessOrEqual(t, s, row.most)
				require.GreaterOrEqual(t, int64(s), secondsUntil(t, w), "never below t")
				seen[s] = true
			}
			require.Len(t, seen, row.most-row.least+1, "every value comes up")
		})
	}
	for _, l := range []*scripted{denying(algo.Never, algo.Forever), denying(algo.Quota, algo.Forever)} {
		require.Empty(t, ask(l).Result().Header.Values("Retry-After"))
	}
}

// secondsUntil is the t of the only RateLimit item, 0 if it has none.
func secondsUntil(t *testing.T, w *httptest.ResponseRecorder) int64 {
	v, _ := structured(t, w.Result().Header, limitField)[0].(httpsfv.Item).Params.Get("t")
	s, _ := v.(int64)
	return s
}

// A client that waits for Retry-After succeeds; one that comes before the exact wait fails.
func TestU2_RetryAfterIsExact(t *testing.T) {
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		for _, early := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				h := httpmw.Limit(bucket(t, algo.Every(wait)), key("k"))(ok)
				require.Equal(t, http.StatusOK, serve(h, get()).Code)
				denied := serve(h, get())
				require.Equal(t, http.StatusTooManyRequests, denied.Code)
				s, err := strconv.Atoi(denied.Result().Header.Get("Retry-After"))
				require.NoError(t, err)
				after := time.Duration(s) * time.Second
				if early {
					time.Sleep(wait - 1)
					require.Equal(t, http.StatusTooManyRequests, serve(h, get()).Code)
					return
				}
				time.Sleep(after)
				require.Equal(t, http.StatusOK, serve(h, get()).Code)
			})
		}
	}
}

func TestAccept(t *testing.T) {
	const text, json = "text/plain; charset=utf-8", "application/problem+json"
	for _, row := range []struct{ accept, want string }{
		{"", json},
		{"*/*", json},
		{"application/json", json},
		{"application/problem+json, text/plain", json},
		{"text/plain, application/json;q=0.5", json},
		{"text/plain", text},
		{"text/*", text},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", text},
		{"image/png", json},
		{strings.Repeat("a/b,", 200) + "text/plain", json},
		{strings.Repeat("text/plain,", 6000), text},
		{"\xff\xfe\x00", json},
	} {
		r := get()
		if row.accept != "" {
			r.Header.Set("Accept", row.accept)
		}
		w := serve(httpmw.Limit(denying(algo.Quota, 1), key("k"))(ok), r)
		require.Equal(t, row.want, w.Result().Header.Get("Content-Type"), "%.80q", row.accept)
		require.NotEmpty(t, w.Body.String())
	}
}

func TestHeadHasNoBody(t *testing.T) {
	r := get()
	r.Method = http.MethodHead
	w := serve(httpmw.Limit(denying(algo.Quota, 1), key("k"))(ok), r)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Empty(t, w.Body.String())
	require.NotEmpty(t, w.Result().Header.Get("Retry-After"))
}

func TestWithDenied(t *testing.T) {
	l := denying(algo.Overload, 2*time.Second)
	custom := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, found := httpmw.DenialFrom(r.Context())
		require.True(t, found)
		require.Equal(t, httpmw.Denial{Status: 503, Policy: "p", Decision: l.decision}, d)
		require.Contains(t, []string{"2", "3"}, w.Header().Get("Retry-After"))
		require.NotEmpty(t, w.Header().Get(limitField))
		require.Empty(t, w.Header().Get("Content-Type"))
		w.WriteHeader(http.StatusTeapot)
	})
	w := serve(httpmw.Limit(l, key("k"), httpmw.WithDenied(custom), httpmw.WithName("p"))(unreachable(t)), get())
	require.Equal(t, http.StatusTeapot, w.Code)
	_, found := httpmw.DenialFrom(t.Context())
	require.False(t, found)
}

// Nothing that a client sends comes back, and nothing crashes.
func TestS2_NothingIsEchoed(t *testing.T) {
	for _, evil := range []string{
		strings.Repeat("evil", 1<<14), "evil\xff\xfe", "evil\x00\x1b[31m", "evil\r\nSet-Cookie: a=b", `evil"<script>`,
	} {
		for i, l := range []algo.Limiter{denying(algo.Quota, 1), denying(algo.Quota, 1), denying(algo.Overload, 1), admitting(), newSlots(1)} {
			r, text := get(), i == 0
			for _, name := range []string{"X-User", "Accept", "Content-Type", "X-Forwarded-For", "Connect-Protocol-Version", "Grpc-Timeout"} {
				r.Header[name] = []string{evil}
			}
			if text {
				r.Header.Set("Accept", "text/plain")
			}
			r.URL.Path, r.URL.RawQuery, r.Host, r.Method = "/"+evil, evil, evil, "EVIL"
			w := serve(httpmw.Limit(l, keyfunc.Header("X-User"))(ok), r)
			require.NotContains(t, strings.ToLower(w.Body.String()), "evil")
			for name, values := range w.Result().Header {
				require.NotContains(t, strings.ToLower(strings.Join(append(values, name), " ")), "evil")
			}
		}
	}
}

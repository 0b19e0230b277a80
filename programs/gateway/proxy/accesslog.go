package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"regexp"
	"time"

	"github.com/sluice-go/sluice/keyfunc"
)

// Request is a request that was answered, for the access log and metrics.
type Request struct {
	Route    string        // the pattern, empty if none matched
	Upstream time.Duration // until the head of its answer; 0: it was not asked
	Status   int
	Denied   bool   // by a limit, or for lack of a decision
	Client   string // its address, behind the trusted proxies
	Passed   bool   // on by a proxy that is not trusted, to which the address belongs
	Key      string // the hash of the key that was denied, in hexadecimal; empty without one
	Policy   string // that denied it
	Cause    string // the reason of the denial, and its cause after a colon
	ID       string // X-Request-Id
	Bytes    int64
	Duration time.Duration
}

type requestKey struct{}

// Served calls done for every request that next has answered.
func Served(next http.Handler, done func(*http.Request, Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &counter{ResponseWriter: w}
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, &c.is))
		begun := time.Now()
		next.ServeHTTP(c, r)
		c.is.Status, c.is.Duration = cmp.Or(c.is.Status, http.StatusOK), time.Since(begun)
		done(r, c.is)
	})
}

// counter notes the status and the length of an answer.
type counter struct {
	http.ResponseWriter
	is Request
}

// Unwrap returns the writer beneath.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader notes the status, unless it is informational.
func (c *counter) WriteHeader(status int) {
	if c.is.Status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		c.is.Status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes of the body.
func (c *counter) Write(b []byte) (int, error) {
	c.is.Status = cmp.Or(c.is.Status, http.StatusOK)
	n, err := c.ResponseWriter.Write(b)
	c.is.Bytes += int64(n)
	return n, err
}

// requestOf returns the record of a request, nil outside Served.
func requestOf(r *http.Request) *Request { return requestIn(r.Context()) }

func requestIn(ctx context.Context) *Request {
	is, _ := ctx.Value(requestKey{}).(*Request)
	return is
}

// named notes the route of a request.
func named(pattern string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if is := requestOf(r); is != nil {
			is.Route = pattern
		}
		next.ServeHTTP(w, r)
	})
}

// identified notes the client of a request, and gives it an X-Request-Id if it has none that is
// fit for a log.
func identified(client keyfunc.HTTP, trusted []netip.Prefix, next http.Handler) http.Handler {
	fit := regexp.MustCompile(`^[\w.:+/=-]{1,128}$`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !fit.MatchString(id) {
			id = fmt.Sprintf("%016x", rand.Uint64())
			r.Header.Set("X-Request-Id", id)
		}
		if is := requestOf(r); is != nil {
			is.ID = id
			is.Client, _ = client(r) // without an address there is none to note
			is.Passed = r.Header["X-Forwarded-For"] != nil && !isTrusted(r.RemoteAddr, trusted)
		}
		next.ServeHTTP(w, r)
	})
}

// AccessLog writes a line for each request. The query is left out: it may have secrets.
func AccessLog(log *slog.Logger) func(*http.Request, Request) {
	return func(r *http.Request, is Request) {
		log.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", r.Method), slog.String("host", r.Host), slog.String("path", r.URL.Path), slog.String("proto", r.Proto),
			slog.String("peer", r.RemoteAddr), slog.String("route", is.Route), slog.Int("status", is.Status), slog.Int64("bytes", is.Bytes),
			slog.Float64("seconds", is.Duration.Seconds()), slog.Float64("upstream_seconds", is.Upstream.Seconds()),
			slog.String("client", is.Client), slog.String("key", is.Key), slog.String("policy", is.Policy), slog.String("cause", is.Cause), slog.String("request_id", is.ID))
	}
}

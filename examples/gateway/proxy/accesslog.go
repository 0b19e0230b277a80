package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/felixge/httpsnoop"
)

// Request is a request that was answered, for the access log and metrics.
type Request struct {
	Route    string        // the pattern, empty if none matched
	Upstream time.Duration // until the head of its answer; 0: it was not asked
	Status   int
	Denied   bool // by a limit, or for lack of a decision
	Bytes    int64
	Duration time.Duration
}

type requestKey struct{}

// Served calls done for every request that next has answered.
func Served(next http.Handler, done func(*http.Request, Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is := &Request{}
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, is))
		answered := httpsnoop.CaptureMetrics(next, w, r)
		is.Status, is.Bytes, is.Duration = answered.Code, answered.Written, answered.Duration
		done(r, *is)
	})
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

// AccessLog writes a line for each request. The query is left out: it may have secrets.
func AccessLog(log *slog.Logger) func(*http.Request, Request) {
	return func(r *http.Request, is Request) {
		log.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", r.Method), slog.String("host", r.Host), slog.String("path", r.URL.Path), slog.String("proto", r.Proto),
			slog.String("peer", r.RemoteAddr), slog.String("route", is.Route), slog.Int("status", is.Status), slog.Int64("bytes", is.Bytes),
			slog.Float64("seconds", is.Duration.Seconds()), slog.Float64("upstream_seconds", is.Upstream.Seconds()))
	}
}

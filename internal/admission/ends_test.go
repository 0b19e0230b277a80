package admission_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
)

// client is what the client of a call does.
type client uint8

const (
	stays     client = iota
	leaves           // once the handler has begun, and sent its messages
	cutsBody         // leaves in the middle of its body
	slowBody         // sends it slowly
	shortTime        // allows 20 ms, which pass
)

// end is an end of work. A protocol in but makes something else of it, or does not have it ("").
type end struct {
	name   string
	status int
	code   codes.Code
	sent   int // messages before the end
	panics bool
	client client
	serve  http.HandlerFunc // over HTTP/1.1 and HTTP/2, in place of these
	denied string           // by a limit further in: "marked" or "lost"
	want   algo.Outcome
	kept   bool // also where WithRefundIf gives back whatever the status
	but    map[string]string
}

const (
	ok, fault, request, stream = algo.Succeeded, algo.Failed, algo.Failed | algo.Untimed, algo.Succeeded | algo.Untimed

	overRPC, onHTTP, web, connect = "gRPC", "gRPC on net/http", "gRPC-Web", "Connect"
)

var (
	// The status is in the body.
	notSeen = map[string]string{web: "succeeded", connect: "succeeded, untimed", onHTTP: "failed"}
	// What is a stream is seen by its content type or by its pace, not by its method.
	short    = map[string]string{web: "succeeded", onHTTP: "succeeded"}
	onlyHTTP = map[string]string{overRPC: "", onHTTP: "", web: "", connect: ""}
)

var allEnds = []end{
	{name: "ok", status: 200, code: codes.OK, want: ok},
	{name: "invalid", status: 400, code: codes.InvalidArgument, want: request},
	{name: "precondition", status: 412, code: codes.FailedPrecondition, want: request},
	{name: "unauthenticated", status: 401, code: codes.Unauthenticated, want: request},
	{name: "forbidden", status: 403, code: codes.PermissionDenied, want: request},
	{name: "not found", status: 404, code: codes.NotFound, want: request},
	{name: "exists", status: 409, code: codes.AlreadyExists, want: request},
	{name: "conflict", status: 409, code: codes.Aborted, want: request},
	{name: "out of range", status: 416, code: codes.OutOfRange, want: request},
	{name: "a quota of its own", status: 429, code: codes.ResourceExhausted, want: request},
	{name: "gave up", status: 499, code: codes.Canceled, want: request},
	{name: "not implemented", status: 501, code: codes.Unimplemented, want: request},
	{name: "error", status: 500, code: codes.Internal, want: fault},
	{name: "unknown error", status: 500, code: codes.Unknown, want: fault},
	{name: "lost data", status: 500, code: codes.DataLoss, want: fault},
	{name: "lacks capacity", status: 503, code: codes.Unavailable, want: fault},
	{name: "upstream timed out", status: 504, code: codes.DeadlineExceeded, want: fault},
	{name: "bad gateway", status: 502, code: codes.Unavailable, want: fault},
	{name: "http version", status: 505, code: codes.Internal, want: fault},
	{name: "insufficient memory", status: 507, code: codes.Internal, want: fault},

	{name: "a message", status: 200, sent: 1, want: stream, but: short},
	{name: "three messages", status: 200, sent: 3, want: stream, but: short},
	{name: "a message, then a failure", status: 500, code: codes.Internal, sent: 1, want: request, but: notSeen},
	{name: "a message, then a fault of the request", status: 400, code: codes.InvalidArgument, sent: 1, want: request,
		but: map[string]string{web: "succeeded", connect: "succeeded, untimed"}},
	// A handler of gRPC that panics has no code.
	{name: "panics", status: 500, panics: true, want: fault, but: map[string]string{overRPC: "failed, kept"}},
	{name: "panics after a message", panics: true, sent: 1, want: request, but: map[string]string{overRPC: "failed, untimed, kept", web: "failed", onHTTP: "failed"}},

	{name: "the client leaves, and it fails", status: 500, code: codes.Internal, client: leaves, want: request, kept: true},
	{name: "the client leaves, and that is noted", status: 499, code: codes.Canceled, client: leaves, want: request, kept: true},
	{name: "the client leaves, and it is served", status: 200, client: leaves, want: request},
	{name: "the client leaves, and is not known", status: 404, code: codes.NotFound, client: leaves, want: request},
	{name: "the client leaves, and it panics", panics: true, client: leaves, want: request, kept: true},
	{name: "the client leaves after a message", status: 200, sent: 1, client: leaves, want: stream},
	{name: "the client leaves after a message, and it panics", panics: true, sent: 1, client: leaves, want: request, kept: true},
	{name: "a body that is cut", status: 400, code: codes.InvalidArgument, client: cutsBody, want: request},
	{name: "a body that is cut, and it fails", status: 500, code: codes.Internal, client: cutsBody, want: request, kept: true},
	{name: "a slow body", status: 200, client: slowBody, want: stream},
	{name: "a slow body, then a failure", status: 500, code: codes.Internal, client: slowBody, want: request},
	{name: "the client's time is over", status: 504, code: codes.DeadlineExceeded, client: shortTime, want: request, kept: true},
	{name: "the client's time is over, and it is served", status: 200, client: shortTime, want: request},

	{name: "denied further in", denied: "marked", want: algo.Canceled, but: map[string]string{web: "", connect: "", onHTTP: ""}},
	{name: "denied further in, the mark is lost", denied: "lost", want: request, but: map[string]string{web: "", connect: "", onHTTP: ""}},
	{name: "nothing is written", serve: func(http.ResponseWriter, *http.Request) {}, want: ok, but: onlyHTTP},
	{name: "nothing is new", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, want: ok, but: onlyHTTP},
	{name: "elsewhere", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusSeeOther) }, want: ok, but: onlyHTTP},
	{name: "hints first", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }, want: ok, but: onlyHTTP},
	{name: "trailers", serve: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "body")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	}, want: ok, but: onlyHTTP},
	{name: "upgraded", serve: func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		conn.Close()
	}, want: stream, kept: true, but: map[string]string{"HTTP/2": "", overRPC: "", onHTTP: "", web: "", connect: ""}},
}

// TestEndsOfWork: an adaptive limit, FailuresOnly and WithRefundIf make the same of each end of
// work, over each protocol.
func TestEndsOfWork(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2", overRPC, onHTTP, web, connect} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			run, cells := newWire(t, protocol), 0
			for _, e := range allEnds {
				want, differs := e.but[protocol]
				if differs && want == "" {
					continue
				}
				kept := e.kept || strings.Contains(want, "kept")
				if want = strings.TrimSuffix(want, ", kept"); !differs {
					want = e.want.String()
				}
				require.Equal(t, want, made(t, func(l algo.Limiter) { run(e, l, false) }), e.name)
				if !kept {
					want = "canceled"
				}
				require.Equal(t, want, made(t, func(l algo.Limiter) { run(e, l, true) }), "%s, refunded", e.name)
				cells += 2
			}
			t.Logf("C2: %d ends of work over %s", cells/2, protocol)
		})
	}
}

// made is what limits make of a run: the outcome, as an adaptive limit has it. FailuresOnly must
// charge if the work failed.
func made(t *testing.T, run func(l algo.Limiter)) string {
	seen, failures := &follower{Strategy: adaptive.Fixed(9), ended: make(chan algo.Outcome, 1)}, algo.Must(algo.NewTokenBucket(algo.PerDay(9)))
	run(algo.All(guard.FailuresOnly(failures), algo.Must(adaptive.New(seen))))
	select {
	case o := <-seen.ended:
		require.Eventually(t, func() bool { return (remaining(t, failures) == 8) == (o.Result() == algo.Failed) }, time.Second, time.Millisecond, o)
		return o.String()
	case <-time.After(10 * time.Second):
		return "no outcome"
	}
}

// follower hears of the end of work as adaptive strategies do.
type follower struct {
	adaptive.Strategy
	ended chan algo.Outcome
}

func (f *follower) Admitted(time.Duration, int64, int64)           {}
func (f *follower) Denied(time.Duration, int64, int64, algo.Cause) {}
func (f *follower) Finished(s adaptive.Sample, _ int64) {
	f.ended <- s.Outcome
}

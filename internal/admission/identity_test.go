package admission_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/guard"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// wrappers change nothing.
var wrappers = map[string]func(algo.Limiter) algo.Limiter{
	"forwarding": func(l algo.Limiter) algo.Limiter { return &forwards{l} },
	"switch":     func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
	"by key":     func(l algo.Limiter) algo.Limiter { return listed(l, l) },
	"ban": func(l algo.Limiter) algo.Limiter {
		return algo.Must(guard.NewBan(l, algo.Per(1<<20-1, time.Millisecond), time.Second, time.Second))
	},
	"all of one":         func(l algo.Limiter) algo.Limiter { return algo.All(l) },
	"all and no limit":   func(l algo.Limiter) algo.Limiter { return algo.All(l, algo.Unlimited()) },
	"no credits":         func(l algo.Limiter) algo.Limiter { return prepaid.First(l, prepaid.NewCredits()) },
	"nested":             func(l algo.Limiter) algo.Limiter { return &forwards{algo.NewSwitch(&forwards{algo.NewSwitch(l)})} },
	"switch of a choice": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(listed(&forwards{l}, l)) },
	"embedded":           func(l algo.Limiter) algo.Limiter { return embeds{l} },
	"ban of a choice": func(l algo.Limiter) algo.Limiter {
		return algo.Must(guard.NewBan(listed(l, l), algo.Per(1<<20-1, time.Millisecond), time.Second, time.Second))
	},
	"all and one that is off": func(l algo.Limiter) algo.Limiter {
		off := algo.NewSwitch(algo.DenyAll())
		off.Off()
		return algo.All(l, off)
	},
	"all, nested": func(l algo.Limiter) algo.Limiter {
		return algo.All(&forwards{algo.All(listed(l, l))}, algo.All(algo.Unlimited(), &forwards{algo.Unlimited()}))
	},
	"everything": func(l algo.Limiter) algo.Limiter {
		return algo.NewSwitch(embeds{algo.All(&forwards{algo.NewSwitch(listed(l, l))}, algo.Unlimited())})
	},
}

// embeds is a user's type around a limiter with methods of its own.
type embeds struct{ algo.Limiter }

func (e embeds) Unwrap() []algo.Limiter { return []algo.Limiter{e.Limiter} }

func listed(l, other algo.Limiter) algo.Limiter {
	return algo.ByKey(func(context.Context, string) algo.Limiter { return l }, l, other)
}

// forwards is a user's wrapper that only forwards.
type forwards struct{ inner algo.Limiter }

func (f *forwards) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f.inner.Acquire(ctx, key, n)
}
func (f *forwards) Unwrap() []algo.Limiter { return []algo.Limiter{f.inner} }

func parsed(text string) func() algo.Limiter {
	return func() algo.Limiter { return algo.Must(algo.Must(algo.Parse(text)).New()) }
}

func marked(make func() (*colors.ThreeColor, error), pass colors.Color) func() algo.Limiter {
	return func() algo.Limiter { return colors.Limit(algo.Must(make()), pass) }
}

// everyLimit makes limits of each kind, but for adaptive.PerKey, whose RetryAfter is an estimate
// by a random sample, so that no twin has it.
var everyLimit = append(everyAlgorithm(),
	marked(func() (*colors.ThreeColor, error) { return colors.NewSRTCM(algo.PerMinute(10), 5, 5) }, colors.Yellow),
	func() algo.Limiter {
		return algo.Must(shares.New(algo.PerMinute(10), map[string]int64{"a": 5})).Child("a")
	},
	func() algo.Limiter {
		c := prepaid.NewCredits()
		_ = c.TopUp("a", 30)
		return c
	},
	func() algo.Limiter { return algo.All(parsed("10/min")(), parsed("fixed-window 30/min")()) },
	func() algo.Limiter { return algo.All(parsed("10/min")(), algo.Must(adaptive.New(adaptive.Fixed(4)))) },
	func() algo.Limiter { return algo.Shadow(parsed("10/min")()) },
	func() algo.Limiter { return guard.FailuresOnly(parsed("10/min")()) },
	func() algo.Limiter {
		return algo.Must(guard.NewBan(parsed("10/min")(), algo.PerMinute(3), time.Minute, time.Hour))
	},
	func() algo.Limiter {
		c := prepaid.NewCredits()
		_ = c.TopUp("a", 10)
		return prepaid.First(parsed("10/min")(), c)
	},
	func() algo.Limiter { return algo.Must(adaptive.New(adaptive.Fixed(6))) },
	algo.Unlimited, algo.DenyAll,
)

func everyAlgorithm() (limits []func() algo.Limiter) {
	for _, text := range cases.Limits("10/min", cases.Without{"spread": "no twin has its windows"}) {
		limits = append(limits, parsed(text))
	}
	return limits
}

// differs has the differences by intention, by wrapper and type of the limit.
var differs = map[string]string{
	"no credits, *guard.Ban":                "a Ban goes around First, which only asks tentatively",
	"all and no limit, *algo.shadow":        nothingInForce,
	"all and one that is off, *algo.shadow": nothingInForce,
	"all, nested, *algo.shadow":             nothingInForce,
	"everything, *algo.shadow":              nothingInForce,
}

const nothingInForce = "a composition with nothing in force states no numbers"

// TestIdentity: a wrapper that changes nothing changes nothing, over each limit.
func TestIdentity(t *testing.T) {
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			algotest.RunWrapper(t, wrap, cases.Count(300, 20_000), alike(name)...)
		})
	}
}

// alike are the limits that a wrapper does not change.
func alike(name string) []func() algo.Limiter {
	return slices.DeleteFunc(slices.Clone(everyLimit), func(l func() algo.Limiter) bool {
		return differs[fmt.Sprintf("%s, %T", name, l())] != ""
	})
}

// TestIdentityOnTheWire: nor does it change an answer over HTTP or gRPC, or an event.
func TestIdentityOnTheWire(t *testing.T) {
	pairs := 0
	for name, wrap := range wrappers {
		for i, make := range alike(name) {
			pairs++
			synctest.Test(t, func(t *testing.T) {
				l := make()
				w, twin := &onWire{}, &onWire{}
				calls, rnd := [2]func(algo.Outcome){w.overHTTP(wrap(l)), w.overRPC(wrap(l))}, rand.New(rand.NewPCG(uint64(i), 2))
				l = make()
				twins := [2]func(algo.Outcome){twin.overHTTP(l), twin.overRPC(l)}
				for range max(cases.Count(100, 2000), 30) {
					if rnd.IntN(3) == 0 {
						time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Second))))
					}
					protocol, o := rnd.IntN(2), algo.Outcome(rnd.IntN(2))
					var both sync.WaitGroup
					both.Go(func() { calls[protocol](o) })
					both.Go(func() { twins[protocol](o) })
					both.Wait()
					require.Equal(t, twin.seen, w.seen, "%s over %T", name, l)
					w.seen, twin.seen = nil, nil
				}
			})
		}
	}
	t.Logf("%d pairs of a wrapper and a limit", pairs)
}

// onWire is what a client and an observer see.
type onWire struct{ seen []any }

func (w *onWire) observe(e telemetry.Event) {
	n := normal(e)
	n.Decision = e.Decision
	w.seen = append(w.seen, n, e.Cost, e.Status, e.Waited, e.Sent.RetryAfter > 0, fmt.Sprint(e.Err))
}

func (w *onWire) overHTTP(l algo.Limiter) func(algo.Outcome) {
	status := 0
	h := httpmw.Limit(l, func(*http.Request) (string, error) { return "a", nil }, httpmw.WithHeaders(httpmw.IETF, httpmw.Legacy), httpmw.WithObserver(w.observe))(
		http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) }))
	return func(o algo.Outcome) {
		status = 200 + 300*int(o)
		got := httptest.NewRecorder()
		h.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/", nil))
		for _, spread := range []string{"Retry-After", "Retry-After-Ms"} { // at random, from the Decision
			got.Header()[spread] = slices.Repeat([]string{"spread"}, len(got.Header()[spread]))
		}
		w.seen = append(w.seen, got.Code, got.Header(), got.Body.String())
	}
}

func (w *onWire) overRPC(l algo.Limiter) func(algo.Outcome) {
	limit := grpcmw.UnaryServerInterceptor(l, func(context.Context, string) (string, error) { return "a", nil },
		grpcmw.WithRateTrailers(), grpcmw.WithObserver(w.observe))
	return func(o algo.Outcome) {
		sent := &trailers{}
		_, err := limit(grpc.NewContextWithServerTransportStream(context.Background(), sent), nil, rpcInfo,
			func(context.Context, any) (any, error) { return nil, status.Error(codes.Code(13*int(o)), "") })
		sent.md.Delete("grpc-retry-pushback-ms") // spread at random
		w.seen = append(w.seen, status.Code(err), status.Convert(err).Message(), len(status.Convert(err).Details()), sent.md)
	}
}

// trailers are those of a call.
type trailers struct{ md metadata.MD }

func (*trailers) Method() string                    { return "/s/m" }
func (*trailers) SetHeader(metadata.MD) error       { return nil }
func (*trailers) SendHeader(metadata.MD) error      { return nil }
func (t *trailers) SetTrailer(md metadata.MD) error { t.md = metadata.Join(t.md, md); return nil }

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/keyfunc"
)

// token is what the scene's service asks of its operators.
const token = "correct horse battery staple"

// scene is a service with every kind of limit, under load that never ends.
type scene struct {
	t               *testing.T
	panel           *admin.Admin
	url             string // of the page
	redis           *redistest.Server
	users, partners *admin.Controlled
	ctx             context.Context
	begun           time.Time

	running sync.WaitGroup
	stage   atomic.Int32 // of the overload: 0 none
	busy    atomic.Int32 // in the slow handler
}

func stageScene(t *testing.T, opts ...admin.Option) *scene {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &scene{t: t, redis: redistest.Start(t), ctx: ctx, begun: time.Now()}
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
	store := must(distributed.New(client, distributed.WithBlocks(40), distributed.WithInstances(2), distributed.WithTimeout(50*time.Millisecond)))
	t.Cleanup(func() { cancel(); s.running.Wait(); _ = store.Close(); _ = client.Close() })

	s.users = admin.Control(algo.Must(algo.NewTokenBucket(algo.PerSecond(4), algo.Burst(12))))
	reports := admin.Control(algo.Must(algo.NewPacer(algo.PerSecond(12), algo.MaxWait(time.Second))))
	trial := algo.Shadow(algo.Must(algo.NewSlidingWindow(algo.PerMinute(40))))
	s.partners = admin.Control(algo.Must(store.TokenBucket("partners", algo.PerSecond(30), algo.Burst(60))))
	vegas := strategy.Vegas(adaptive.WithLimits(4, 60))
	bbr := strategy.BBR(strategy.WithSignal(signal.CPU()))
	checkout := algo.Must(adaptive.New(adaptive.Min(vegas, bbr)))

	all := append([]admin.Option{
		admin.WithTitle("shop-api, instance 2"),
		admin.WithPolicy("per-client", s.users), admin.WithPolicy("reports", reports),
		admin.WithPolicy("search-trial", trial), admin.WithPolicy("partners", s.partners), admin.WithPolicy("checkout", checkout),
		admin.WithAdaptive("checkout", checkout), admin.WithStore("main", store, "partners"),
	}, opts...)
	s.panel = must(admin.New(all...))
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", s.panel))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + "/limits/"

	key := keyfunc.Header("X-User")
	s.load("per-client", s.users, key, s.wave, 60, func(http.ResponseWriter, *http.Request) {})
	s.load("reports", reports, keyfunc.Global(), func() float64 { return 7 + 6*math.Sin(s.age()/19) }, 1, func(http.ResponseWriter, *http.Request) {})
	s.load("search-trial", trial, key, func() float64 { return 9 }, 9, func(http.ResponseWriter, *http.Request) {})
	s.load("partners", s.partners, key, func() float64 { return 70 + 30*math.Sin(s.age()/31) }, 3, func(http.ResponseWriter, *http.Request) {})
	s.load("checkout", checkout, keyfunc.Global(), s.overload, 1, s.slow)
	return s
}

func (s *scene) age() float64 { return time.Since(s.begun).Seconds() }

// wave is a load with ups and downs, and a burst now and then.
func (s *scene) wave() float64 {
	n := 70 + 25*math.Sin(s.age()/23)
	if math.Mod(s.age(), 75) > 66 {
		n += 90
	}
	return n
}

func (s *scene) overload() float64 {
	if s.stage.Load() > 0 {
		return 330
	}
	return 90
}

// slow is a handler on twelve workers: further requests wait for them.
func (s *scene) slow(http.ResponseWriter, *http.Request) {
	n := s.busy.Add(1)
	defer s.busy.Add(-1)
	time.Sleep(time.Duration(60*math.Max(1, float64(n)/12)) * time.Millisecond)
}

// load sends requests of so many users at a rate that changes, as a Poisson
// process. Few users send most.
func (s *scene) load(name string, l algo.Limiter, key keyfunc.HTTP, rate func() float64, users int, work http.HandlerFunc) {
	handler := httpmw.Limit(l, key, httpmw.WithName(name), httpmw.WithObserver(s.panel.Observe))(work)
	s.running.Go(func() {
		next := time.Now()
		for s.ctx.Err() == nil {
			if time.Since(next) > time.Second/4 {
				next = time.Now() // this machine was busy: missed requests are not made up for
			}
			next = next.Add(time.Duration(rand.ExpFloat64() / rate() * float64(time.Second)))
			time.Sleep(time.Until(next))
			who := int(float64(users) * math.Pow(rand.Float64(), 2.2))
			r := httptest.NewRequestWithContext(s.ctx, http.MethodGet, "/", nil)
			r.Header.Set("X-User", fmt.Sprintf("user-%d", who))
			s.running.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), r) })
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Quota sells an API by the call: so many a second and so many a day, by the
// plan of the customer, counted in Redis over all instances. When Redis is away
// the instances go on with a part of the limits each.
//
//	docker compose up --build    # Redis, and two instances on 8081 and 8082
//	curl -i -H 'X-Api-Key: alice-key' 127.0.0.1:8081
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// customer is a caller, and the plan that it has bought.
type customer struct{ name, plan string }

// customers by API key. A real service looks them up where it keeps them.
var customers = map[string]customer{
	"alice-key": {"alice", "gold"},
	"bob-key":   {"bob", "free"},
}

// plan is a number of calls a second, with a burst of twice that, and a day.
type plan struct{ second, day int64 }

var plans = map[string]plan{"free": {5, 1000}, "gold": {50, 100_000}}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "address to serve on")
	server := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	flag.Parse()

	redis.SetLogger(silence{}) // the hook below says it once
	client := redis.NewClient(&redis.Options{Addr: *server})
	quiet := distributed.WithLogger(slog.New(slog.DiscardHandler))
	store, err := distributed.New(client, quiet, distributed.WithHook(tell))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := api(store)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(*address, handler))
}

// tell says when Redis goes away and when it is back.
func tell(e distributed.Event) {
	switch {
	case e.Kind != distributed.BreakerChanged:
	case e.Phase == distributed.PhaseOpen:
		log.Print("Redis is out of reach; limiting locally: ", e.Err)
	case e.Phase == distributed.PhaseClosed:
		log.Print("Redis is back")
	}
}

// silence is a logger for go-redis.
type silence struct{}

// Printf drops the message.
func (silence) Printf(context.Context, string, ...any) {}

// api is the service behind its quotas. A bucket of a day fills all day long: who
// spends it at once has used nearly twice as much when the day is over. For a quota
// that begins anew take store.FixedWindow; of these two buckets, and not of a
// bucket and a window, Redis decides in one step.
func api(store *distributed.Store) (http.Handler, error) {
	limits := map[string][]httpmw.Policy{}
	for name, p := range plans {
		second, err := store.TokenBucket(name+"-second", algo.PerSecond(p.second), algo.Burst(2*p.second))
		if err != nil {
			return nil, err
		}
		day, err := store.TokenBucket(name+"-day", algo.PerDay(p.day))
		if err != nil {
			return nil, err
		}
		limits[name] = []httpmw.Policy{
			{Name: "second", Limiter: second, Key: keyfunc.Context(customerName)},
			{Name: "day", Limiter: day, Key: keyfunc.Context(customerName)},
		}
	}
	limit := httpmw.NewPlans(keyfunc.Context(customerPlan), limits).Limit
	return identify(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "here you are")
	}))), nil
}

type contextKey struct{}

// identify puts the customer into the context, and refuses strangers.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := customers[r.Header.Get("X-Api-Key")]
		if !ok {
			http.Error(w, "unknown API key", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, c)))
	})
}

func customerName(ctx context.Context) (string, bool) {
	c, ok := ctx.Value(contextKey{}).(customer)
	return c.name, ok
}

func customerPlan(ctx context.Context) (string, bool) {
	c, ok := ctx.Value(contextKey{}).(customer)
	return c.plan, ok
}

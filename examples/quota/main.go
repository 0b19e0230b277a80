// Quota sells an API by the call: so many a second and so many a day for each
// customer, counted in Redis over all instances. When Redis is away the
// instances go on with a part of the limits each.
//
//	docker compose up --build    # Redis, and two instances on 8081 and 8082
//	curl -i -H 'X-Api-Key: alice' 127.0.0.1:8081
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func main() {
	address := flag.String("http", "127.0.0.1:8080", "address to serve on")
	server := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	pepper := flag.String("pepper", "change me", "secret that API keys are hashed with")
	flag.Parse()

	store, err := distributed.New(redis.NewClient(&redis.Options{Addr: *server}))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := api(store, []byte(*pepper))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(*address, handler))
}

// api is the service behind its quotas. The key is hashed before it becomes
// part of a key in Redis.
func api(store *distributed.Store, pepper []byte) (http.Handler, error) {
	second, err := store.TokenBucket("second", algo.PerSecond(10), algo.Burst(20))
	if err != nil {
		return nil, err
	}
	day, err := store.TokenBucket("day", algo.PerDay(10_000))
	if err != nil {
		return nil, err
	}
	customer := keyfunc.Secret("X-Api-Key", pepper)
	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "second", Limiter: second, Key: customer},
		{Name: "day", Limiter: day, Key: customer},
	})
	return limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "here you are")
	})), nil
}

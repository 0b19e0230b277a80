// Frameworks serves the same small API with chi, gin, echo or connect, limited
// by the middleware of net/http that package httpmw makes. One file for each
// shows all that it takes:
//
//	go run . -framework gin
//	curl -si -H 'X-User: dave' http://127.0.0.1:8080/items/1
//
// chi and connect are net/http themselves. gin and echo have a handler type of
// their own; ginLimit and echoLimit are the adapters to copy. gRPC proper is
// not here: package grpcmw has its interceptors, see examples/grpc.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// userAndRoute gives each user a quota on each route. The route is the pattern
// as it was registered, never the path: clients choose paths.
var userAndRoute = keyfunc.Join(keyfunc.Header("X-User"), keyfunc.Route())

// apis makes the API with each framework, of a quota and a limit in flight.
var apis = map[string]func(users, slots algo.Limiter) http.Handler{
	"chi":     func(users, slots algo.Limiter) http.Handler { return chiAPI(users, slots) },
	"gin":     func(users, slots algo.Limiter) http.Handler { return ginAPI(users, slots) },
	"echo":    func(users, slots algo.Limiter) http.Handler { return echoAPI(users, slots) },
	"connect": func(users, slots algo.Limiter) http.Handler { return connectAPI(users, slots) },
}

func main() {
	framework := flag.String("framework", "chi", "chi, gin, echo or connect")
	address := flag.String("http", "127.0.0.1:8080", "address to serve on")
	flag.Parse()
	if err := serve(*framework, *address); err != nil {
		log.Fatal(err)
	}
}

func serve(framework, address string) error {
	api, ok := apis[framework]
	if !ok {
		return fmt.Errorf("frameworks: %q is none of chi, gin, echo and connect", framework)
	}
	users, err := algo.NewTokenBucket(algo.PerSecond(5), algo.Burst(10))
	if err != nil {
		return err
	}
	slots, err := adaptive.New(adaptive.Fixed(64))
	if err != nil {
		return err
	}
	log.Printf("%s on http://%s", framework, address)
	s := &http.Server{Addr: address, Handler: api(users, slots), ReadHeaderTimeout: 10 * time.Second}
	return s.ListenAndServe()
}

// Http limits an HTTP API by client address, in the fewest lines.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func main() {
	address := flag.String("http", "127.0.0.1:8080", "address to serve on")
	flag.Parse()

	users := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello")
	})
	handler = httpmw.Limit(users, keyfunc.ClientIP())(handler)

	log.Fatal(http.ListenAndServe(*address, handler))
}

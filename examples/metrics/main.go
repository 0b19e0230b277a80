// Metrics serves HTTP and gRPC behind the same limits, and reports their
// decisions to Prometheus on an address of its own.
//
//	go run .
//	curl -i http://127.0.0.1:8080/
//	curl -s http://127.0.0.1:9464/metrics | grep ratelimit
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os/signal"
	"syscall"
)

func main() {
	var at addresses
	flag.StringVar(&at.http, "http", "127.0.0.1:8080", "address of the HTTP server")
	flag.StringVar(&at.grpc, "grpc", "127.0.0.1:9090", "address of the gRPC server")
	flag.StringVar(&at.metrics, "metrics", "127.0.0.1:9464", "address of /metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s, err := newService(at, slog.Default())
	if err != nil {
		log.Fatal(err)
	}
	if err := s.serve(ctx); err != nil {
		log.Fatal(err)
	}
}

// Package telemetry is what the adapters tell of their decisions: one [Event]
// for each, the same for HTTP and gRPC, and observers that are ready to use.
//
//	handler = httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithObserver(observe))(handler)
//	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP(), grpcmw.WithObserver(observe))...)
//
// where observe is any function of an Event:
//
//   - [Log.Observe] writes to log/slog whom a limit denies, with sampling;
//   - Metrics.Observe of package otelmetrics counts for OpenTelemetry;
//   - [Tee] calls several.
//
// An adapter without an observer does not read the clock and builds no event. One
// with an observer makes the event on the stack: two readings of the clock and a
// hash of the key, and no allocation.
//
// Keys are in no event, only their hashes, which mean nothing outside of the
// process: addresses and user names belong neither into a log nor on a label.
//
// Do not use it to account for what users consume: events are told before the
// handler runs, and say nothing of outcomes, refunds and settled costs. Do not
// decide by it either; an [algo.Limiter] does that.
package telemetry

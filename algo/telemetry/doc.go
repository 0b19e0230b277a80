// Package telemetry has the events of the adapters, one [Event] for each decision, the same for HTTP and
// gRPC, and observers of them.
//
//	handler = httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithObserver(observe))(handler)
//	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP(), grpcmw.WithObserver(observe))...)
//
// observe is any function of an Event:
//
//   - Log.Observe of package eventlog logs denials and failures to log/slog, with sampling;
//   - Metrics.Observe of package otelmetrics counts for OpenTelemetry;
//   - [Tee] calls several observers.
//
// An adapter without an observer neither reads the clock nor makes an event. With an observer it reads
// the clock twice, hashes the key, and allocates nothing.
//
// Events have no keys, only hashes that mean nothing outside the process: addresses and user names belong
// neither in a log nor on a label.
//
// Do not use it for accounting: events come before the handler runs, without its outcome, refunds and
// settled costs. Do not make decisions in an observer; that is the job of an [algo.Limiter].
package telemetry

// Package otelmetrics counts for OpenTelemetry what the adapters decide, on the
// metric API alone: which SDK and exporter there are, is the program's choice.
//
//	metrics, err := otelmetrics.New(provider)
//	handler = httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithObserver(metrics.Observe))(handler)
//	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP(), grpcmw.WithObserver(metrics.Observe))...)
//
// The instruments:
//
//	ratelimit.requests               counter, {request}    policy, transport, result
//	ratelimit.queue.duration         histogram, s          policy, transport
//	ratelimit.fallback               counter, {request}    policy, transport
//	ratelimit.active_requests        gauge, {request}      policy
//	ratelimit.active_requests.limit  gauge, {request}      policy
//
// result is allowed, canceled, failed-open, failed-closed, or one of
// denied-quota, denied-overload, denied-never, shadowed-quota, shadowed-overload
// and shadowed-never, where shadowed is what a limit on trial (algo.Shadow) let
// through and would have denied; an event of no known result is unknown. transport is http or grpc where requests are
// served, http-client or grpc-client where they are sent.
//
// ratelimit.queue.duration is the time that a decision took: in the queue of an
// in-flight limit, on the way to Redis, sleeping out a Delay.
// ratelimit.fallback counts the decisions that were taken locally because the
// shared store was away. The gauges are of the limiters given to
// [Metrics.InFlight]; a limit of 2147483647 is none.
//
// Neither keys nor methods are labels. At most 64 policies ([MaxPolicies]) are
// told apart, 44 series of ratelimit.requests for each at the very most, and those
// beyond are counted together as "other": whatever clients send, the number of
// series is fixed.
//
// Do not use it to account for what single users consume, which needs a label of
// unbounded cardinality; a log or a database does that.
package otelmetrics

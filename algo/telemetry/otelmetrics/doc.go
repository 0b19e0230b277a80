// Package otelmetrics counts the decisions of the adapters for OpenTelemetry. It
// uses the metric API only; the program chooses SDK and exporter.
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
// The attribute result is one of
//
//   - allowed, canceled, failed-open, failed-closed;
//   - denied-quota, denied-overload, denied-never;
//   - shadowed-quota, shadowed-overload, shadowed-never: admitted by a shadow
//     limit (algo.Shadow) that would have denied it;
//   - unknown, for an event with an unknown result.
//
// The attribute transport is http or grpc for limits on incoming requests,
// http-client or grpc-client for outgoing ones.
//
// ratelimit.queue.duration is the duration of decisions: in the queue of an
// in-flight limit, on the way to Redis, sleeping out a Delay.
// ratelimit.fallback counts local decisions because the shared store was
// unavailable. The gauges show the limiters given to [Metrics.InFlight]; a limit
// of 2147483647 means no limit.
//
// Neither keys nor methods are labels. At most 64 policies ([MaxPolicies]) are
// counted separately, with at most 44 series of ratelimit.requests each, and
// further ones together as "other". Clients cannot increase the number of series.
//
// Do not use it for the consumption of single users, which needs a label of
// unbounded cardinality; use a log or a database.
package otelmetrics

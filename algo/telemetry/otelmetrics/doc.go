// Package otelmetrics counts the decisions of the adapters for OpenTelemetry. It
// uses the metric API only; the program chooses SDK and exporter.
//
//	metrics, err := otelmetrics.New(provider)
//	handler = httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithObserver(metrics.Observe))(handler)
//	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP(), grpcmw.WithObserver(metrics.Observe))...)
//
// The instruments, with their attributes after "ratelimit.":
//
//	ratelimit.requests                     counter, {request}  policy, transport, outcome, reason
//	ratelimit.queue.duration               histogram, s        policy, transport
//	ratelimit.fallback                     counter, {request}  policy, transport
//	ratelimit.active_requests              gauge, {request}    policy
//	ratelimit.active_requests.limit        gauge, {request}    policy
//	ratelimit.active_requests.utilization  gauge, 1            policy
//	ratelimit.limit                        gauge, {unit}       policy
//	ratelimit.limit.window                 gauge, s            policy
//	ratelimit.limit.off                    gauge, {limit}      policy
//	ratelimit.keys                         gauge, {key}        policy
//	ratelimit.keys.limit                   gauge, {key}        policy
//	ratelimit.keys.overflowed              counter, {charge}   policy
//	ratelimit.learned.rate                 gauge, {unit}/s     policy
//	ratelimit.learned.wait                 gauge, s            policy
//	ratelimit.learned.waits                counter, {wait}     policy
//	ratelimit.learned.denied               counter, {unit}     policy
//	ratelimit.tenant.asked                 gauge, 1            policy, tenant
//	ratelimit.tenant.admitted              gauge, 1            policy, tenant
//
// The attribute ratelimit.outcome is one of
//
//   - allowed, canceled, failed_open, failed_closed;
//   - denied;
//   - shadowed: admitted by a shadow limit (algo.Shadow) that would have denied it;
//   - off: admitted since no limit was in force (algo.SourceOff), as while a switch is off;
//   - unknown, for an event with an unknown result.
//
// ratelimit.reason says why a request was denied or shadowed: quota, overload, banned or never. Other
// outcomes are without it.
//
// The attribute ratelimit.transport is http or grpc for limits on incoming requests,
// http-client or grpc-client for outgoing ones.
//
// A span of the request that is recorded gets the attributes outcome, reason, limit and
// remaining under "ratelimit.policy.NAME.", for each policy.
//
// ratelimit.queue.duration is the duration of decisions: in the queue of an in-flight limit, on
// the way to Redis, sleeping out a Delay. ratelimit.fallback counts local decisions because the
// shared store was unavailable. The gauges of active requests show the limiters given to
// [Metrics.InFlight], the tenants' gauges the ones given to [Metrics.Tenants], the others those
// given to [Metrics.Limits]. ratelimit.limit.off is 1 while a limit denies nothing, because it
// is switched off or on trial, otherwise 0. A limiter without a limit, or without keys in this
// process, has no such of the other gauges; those that are learned are of limits that learn
// (package algo/learn), of all keys together.
//
// Except for [Metrics.Tenants], neither keys nor methods are labels. At most 64 policies ([MaxPolicies]) are
// counted separately, with at most 44 series of ratelimit.requests each, and
// further ones together as "other". Clients cannot increase the number of these series.
//
// Do not use it for the consumption of single users, which needs a label of
// unbounded cardinality; use a log or a database.
package otelmetrics

// Package httpmw limits HTTP requests: a middleware for servers, for any [algo.Limiter] and any
// key of package keyfunc. Package httpmw/client is for clients.
//
//	limiter := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
//	handler = httpmw.Limit(limiter, keyfunc.ClientIP())(handler)
//
// # Answers
//
// Admitted responses carry the fields of
// draft-ietf-httpapi-ratelimit-headers-11:
//
//	RateLimit-Policy: "10-per-second-burst-20";q=20;w=2
//	RateLimit: "10-per-second-burst-20";r=17;t=1
//
// Responses have no fields while an adaptive limiter sees no reason for a
// limit. An httputil.ReverseProxy removes all fields that were set before it from
// a response that its upstream precedes with an informational one (103 Early Hints).
//
// A client that has used up its quota gets 429 Too Many Requests; 503 Service
// Unavailable means that the server lacks capacity. Requests in flight under the
// key of one client are a quota; requests in flight under a key that all clients
// share, the empty key or keyfunc.Global, are capacity. So a server-wide
// in-flight limit needs keyfunc.Global.
//
// Denials carry Retry-After-Ms, the wait in milliseconds, spread by up to 20 %, at most 5 s, or
// until the whole quota is back, at most 1 s; and Retry-After, the same in whole seconds,
// rounded up. A request after either time succeeds unless others spend the quota in between.
// Both are omitted where a retry is in vain: for a cost that can never fit, a ban without an end,
// or a deadline that comes first.
//
// Many clients that were denied at the same instant come back spread out if they read
// Retry-After-Ms, as package httpmw/client and the clients of some large services do, or speak
// gRPC. Those that wait whole seconds come back together, and find the burst of the limit each
// time: if they should get more, use a burst of a second of the rate, or
// algo.MaxWait(time.Second), with which the limit lets them wait their turn.
//
// The body is problem details (RFC 9457), or a short text for clients that prefer it.
// Package httpmw/rpc answers gRPC, gRPC-Web and Connect requests in their own protocol.
//
// No input from a request is ever sent back, nor is the text of an error. A
// request that cannot be decided gets 503 unless WithFailOpen admits it, never
// 500. A request whose context ended before the decision gets 503 without a
// body, since its client is gone.
//
// # Several limits, costs and clients
//
// [Limits] takes several named policies in one all-or-nothing decision.
// [algo.LeaseFrom] lets a handler correct the cost of its request. Package httpmw/client paces
// clients by a limit and by the waits that servers ask for.
//
// # Performance
//
// An admission costs one or two allocations for the fields, none without them. The
// handler gets the server's own response writer, unless an option needs the
// status or the limiter may hold a slot for the request. Then the writer is
// wrapped; see [Limit].
//
// # When not to use it
//
//   - Limits on the work of one request, such as messages of a stream or rows
//     of a batch: acquire from the limiter in the handler, and answer with
//     [Answer].
//   - gRPC servers of google.golang.org/grpc: package grpcmw knows methods and
//     streams.
//   - Floods that exhaust connections or bandwidth: limit in front of the
//     server. A request that reaches a handler has been accepted already.
package httpmw

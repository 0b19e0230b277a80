// Package httpmw limits HTTP requests in a server's middleware, by any [algo.Limiter] and any
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
// Responses have no fields while an adaptive limiter enforces no limit. If the
// upstream of an httputil.ReverseProxy sends an informational response (103 Early
// Hints), the proxy removes all fields that were set before it.
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
// Both are omitted if a retry cannot succeed: for a cost that can never fit, a ban without an
// end, or a deadline that comes first.
//
// Clients that were denied at the same instant return spread out if they read Retry-After-Ms,
// as package httpmw/client and the clients of some large services do, or speak gRPC. Clients
// that wait whole seconds return together, and share only the burst of the limit each time. To
// admit more of them, set the burst to one second of the rate, or use algo.MaxWait(time.Second).
//
// The body is problem details (RFC 9457), or a short text for clients that prefer it.
// Package httpmw/rpc answers gRPC, gRPC-Web and Connect requests in their own protocol.
//
// An answer never includes input from a request or the text of an error. A
// request that cannot be decided gets 503, never 500, unless WithFailOpen admits
// it. A request whose context ended before the decision gets 503 without a body,
// because its client has gone.
//
// # Several limits, costs and clients
//
// [Limits] decides several named policies together, all or nothing. With [algo.LeaseFrom] a
// handler corrects the cost of its request. Package httpmw/client paces clients by a limit and
// by the waits that servers ask for.
//
// # Performance
//
// An admission costs one or two allocations for the fields, none without them. The
// handler gets the server's own response writer; it gets a wrapper only if an option
// needs the status or the limiter may hold a slot for the request: see [Limit].
//
// # When not to use it
//
//   - Limits on the work of one request, such as messages of a stream or rows
//     of a batch: acquire from the limiter in the handler, and answer with
//     [Answer].
//   - gRPC servers of google.golang.org/grpc: package grpcmw knows methods and
//     streams.
//   - Floods that exhaust connections or bandwidth: limit in front of the
//     server, because it has accepted a request before the handler sees it.
package httpmw

// Package httpmw limits HTTP requests: a middleware for servers and a
// transport for clients, for any [algo.Limiter] and any key of package
// keyfunc.
//
//	limiter := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
//	handler = httpmw.Limit(limiter, keyfunc.ClientIP())(handler)
//
// # What clients see
//
// Admitted responses carry the fields of
// draft-ietf-httpapi-ratelimit-headers-10:
//
//	RateLimit-Policy: "20-per-2s";q=20;w=2
//	RateLimit: "20-per-2s";r=17;t=1
//
// An adaptive limiter that sees no reason for a limit has nothing to tell, and
// its answers no fields.
//
// A request that has spent its quota is answered with 429 Too Many Requests;
// one that the server has no capacity for, with 503 Service Unavailable. What
// one key may hold in flight is a quota; what all may hold together, under the
// empty key or that of keyfunc.Global, is capacity. So a server-wide in-flight
// limit wants keyfunc.Global.
//
// Denials carry Retry-After in whole seconds, rounded up and spread by up to
// 20 %, at most 5 s; waiting that long is enough unless others spend in
// between. It is left out when the cost can never fit. The body is problem
// details (RFC 9457), or a short text for clients that prefer it; gRPC,
// gRPC-Web and Connect requests are answered in their own protocol.
//
// Nothing of a request is ever sent back, nor is the text of an error. A
// request that cannot be decided is refused with 503 unless WithOnError says
// otherwise, never with 500.
//
// # More
//
// [Limits] takes several named policies in one all-or-nothing decision.
// [LeaseFrom] lets a handler correct the cost of its request. [Transport] is
// for clients: it keeps to a limit and to what servers ask for.
//
// # What it costs
//
// An admission costs two allocations for the fields, none without them. The
// response writer that the handler gets is the server's own, unless an option
// needs the status or the limiter may hold a slot for the request; then it is
// wrapped, with the same optional interfaces.
//
// # When not to use it
//
// For limits on what one request does inside the handler, such as messages of
// a stream or rows of a batch, ask the limiter there. For gRPC servers of
// google.golang.org/grpc use package grpcmw, which knows methods and streams.
// Against floods that exhaust connections or bandwidth, limit in front of the
// server: a request that reaches a handler has been paid for already.
package httpmw

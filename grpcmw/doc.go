// Package grpcmw limits gRPC calls: interceptors for servers and clients
// around any algo.Limiter, and a tap handle that sheds before a call costs
// anything.
//
//	srv := grpc.NewServer(grpcmw.ServerOptions(perClient, rpckey.PeerIP())...)
//
// # Answers
//
// A spent quota, and a cost that never fits, is RESOURCE_EXHAUSTED; overload,
// and a limiter that failed (see [WithOnError]), is UNAVAILABLE. The details are
//
//   - ErrorInfo: the reason RATE_LIMIT_EXCEEDED or SERVER_OVERLOADED, the
//     domain of [WithDomain], and under "policy" the name of the limit;
//   - RetryInfo: when to come back, absent if never;
//   - QuotaFailure, with RESOURCE_EXHAUSTED: the subject is the class of the
//     key (address, method, caller, certificate, secret, combined, global,
//     unidentified), never the key itself.
//
// Nothing that a client sent, and no text of an error, is in an answer.
//
// # Retries
//
// A denial carries exactly one trailer grpc-retry-pushback-ms (gRFC A6), which
// clients with a retry policy obey. It is never earlier than the limiter said,
// up to 20 % or 5 s later, so that clients do not all come back at once, and -1
// (do not retry) when the cost can never fit or the wait would take all that
// is left of the caller's deadline. A limiter that gives no time stands for one
// second.
//
// Headers are never set, not even on admitted calls: a header commits the client
// to the attempt, and then its retry policy and the pushback are ignored. An
// interceptor or handler that sends headers before it fails has the same effect;
// nothing in here can undo that.
//
// Of several limits on a call, the first to deny answers, and what the ones
// further out had charged is given back. On a stream that is charged by message
// more than one can deny; then the longest pushback is sent, by the outermost.
//
// A tap handle cannot send a trailer; see [TapHandle].
//
// # Streams and clients
//
// A stream is charged when it is opened, or by message ([WithStreamMode]), and
// a message that does not fit ends the stream or waits ([WithBackPressure]).
// Clients are paced rather than denied ([DialOptions]).
//
// # Slots
//
// Leases are released in a deferred call, so that panics, exits of the
// goroutine, cancellations and resets free the slot of an in-flight limiter. It
// is not freed before the handler returns: a canceled call goes on working until
// then. A call that its client gave up stays charged.
//
// # When not to use it
//
// A limit that depends on the outcome of a call or on fields that only the
// handler understands is asked from the handler itself. Behind a proxy that
// limits already, limit only what the proxy cannot see. A limit of bytes belongs
// to flow control. A call that the server starts within itself does not pass any
// interceptor. For gRPC over net/http (grpc-go's ServeHTTP) either package works;
// use one of them, not both.
package grpcmw

// Package grpcmw limits gRPC calls: interceptors for servers around any
// algo.Limiter.
//
//	srv := grpc.NewServer(grpcmw.ServerOptions(perClient, rpckey.PeerIP())...)
//
// # Answers
//
// A call gets RESOURCE_EXHAUSTED if its caller has used up a quota or the cost
// can never fit, and UNAVAILABLE if the server lacks capacity or could not decide
// ([WithFailOpen]). Calls in flight under the key of one caller are a quota; calls
// in flight under a key that all callers share, the empty key or rpckey.Global,
// are capacity. The details are
//
//   - ErrorInfo: the reason RATE_LIMIT_EXCEEDED, SERVER_OVERLOADED, BANNED or KEY_MISSING, the
//     domain "sluice", and under "policy" the name of the limit;
//   - RetryInfo: when to retry, absent if never;
//   - QuotaFailure, with RESOURCE_EXHAUSTED: the subject is the class of the
//     key (address, method, caller, certificate, secret, combined, global,
//     unidentified), never the key itself.
//
// No answer contains input from a client or the text of an error. A call whose
// context ended before the decision gets the status of the context.
//
// # Retries
//
// A denial carries exactly one trailer grpc-retry-pushback-ms (gRFC A6), which
// clients with a retry policy obey. It is never earlier than the limiter's wait,
// and up to 20 %, at most 5 s, later, or up to the time at which the whole quota is
// back, at most 1 s, so that clients do not all retry at once.
// It is -1 (do not retry) when the cost can never fit or the wait would take the
// rest of the caller's deadline. The default for limiters without a wait is one
// second.
//
// Headers are never set, not even on admitted calls: a header commits the client
// to the attempt, and then its retry policy and the pushback are ignored. An
// interceptor or handler that sends headers before it fails has the same effect,
// which this package cannot undo.
//
// Of several limits on a call, the first to deny answers. The charges of outer limits
// stay, because the call has arrived; [Limits] charges all or none. But the call did no
// work: outer limits free its slot, FailuresOnly counts no failure, and [WithRefundIf]
// refunds the charge. An interceptor in between that replaces a denial by another error,
// and does not wrap it, turns it into a failure of the handler. On a stream that is charged
// by message several limits can deny; then the outermost sends the longest pushback.
//
// # Streams and clients
//
// A stream is charged when it is opened, or by message ([WithStreamMode]); a
// message that does not fit ends the stream or waits ([WithBackPressure]).
// Package grpcmw/client paces clients instead of denying their calls.
//
// # Slots
//
// A deferred call releases the lease, so that panics, exits of the goroutine,
// cancellations and resets free the slot of an in-flight limiter, but not before
// the handler returns, because a canceled call works until then. A call that its
// client gave up stays charged.
//
// # When not to use it
//
//   - Limits that depend on the outcome of a call or on fields that only the
//     handler understands: acquire from the limiter in the handler, and return
//     [DenialError].
//   - Services behind a proxy with limits: limit only the keys that the proxy
//     cannot see.
//   - Calls within the server's process: they pass no interceptor.
//
// For gRPC over net/http (grpc-go's ServeHTTP) use httpmw with the answers of httpmw/rpc instead.
// This package limits there too, but ServeHTTP sends headers before the status, so that no retry
// policy applies to a denial.
package grpcmw

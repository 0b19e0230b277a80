// Package rpckey has the key functions for gRPC: each constructor makes a
// [keyfunc.RPC], which package grpcmw calls with the context and the full
// method of a call. Keys, trust in proxies and errors are those of package
// keyfunc, and a client has the same key over both transports.
//
//	deployment                                key function
//	clients connect to this server directly   PeerIP()
//	behind proxies with known addresses       ClientIP(prefixes...)
//	another header, counted hops, Unix        FromConfig(keyfunc.IPConfig{...})
//	behind authentication                     Context(get)
//	mutual TLS                                TLSIdentity()
//	a metadata key set by a gateway           Metadata(name)
//	per method, per service                   FullMethod(), Service()
//	several of these together                 Join(...)
//	the first of these that a call has        Or(...)
//	one limit for all calls                   Global()
//	no limit for some networks (WithSkip)     Within(config, prefixes...)
//
// The functions are safe for concurrent use, never panic on a call, and read
// a bounded part of its metadata. Constructors without an error result panic
// on a nil argument or one out of range.
package rpckey

import (
	"fmt"

	"github.com/sluice-go/sluice/keyfunc"
)

// noKey makes an error that wraps keyfunc.ErrNoKey. Call it when a key function
// is built, never on a call.
func noKey(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{keyfunc.ErrNoKey}, args...)...)
}

// require panics with the name of the constructor unless ok.
func require(ok bool, constructor, problem string) {
	if !ok {
		panic("rpckey: " + constructor + ": " + problem)
	}
}

package keyfunc

import (
	"context"
	"net/http"
)

// globalKey is the one key of a limit that is not split by client.
const globalKey = "~global"

// Global gives every request the same key: one limit for the whole server.
// It never fails.
func Global() HTTP {
	return func(*http.Request) (string, error) { return globalKey, nil }
}

// RPCGlobal is [Global] for gRPC, with the same key.
func RPCGlobal() RPC {
	return func(context.Context, string) (string, error) { return globalKey, nil }
}

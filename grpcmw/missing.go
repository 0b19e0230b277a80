package grpcmw

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/keyfunc"
)

// MissingKey is what becomes of calls without a key: [Shared], [Deny], [Skip]
// or the result of [FallbackTo].
type MissingKey interface {
	// keyFor returns the key to use instead. With a verdict other than charge
	// the key means nothing.
	keyFor(ctx context.Context, method string) (key string, v verdict, err error)
}

// verdict is what to do with a call before the limiter is asked.
type verdict uint8

const (
	charge verdict = iota // ask the limiter
	pass                  // let it through, unlimited
	refuse                // deny it, it lacks a key
)

// The simple policies for missing keys.
const (
	// Shared lets all calls without a key share one bucket of the limiter,
	// under the key "~missing": they are limited as one caller.
	Shared missingMode = iota
	// Deny answers RESOURCE_EXHAUSTED and tells the client not to try again.
	Deny
	// Skip lets the call pass, not limited. Whoever leaves the identity out is
	// not limited.
	Skip
)

// missingKey is the key that calls without one share, the same as over HTTP.
const missingKey = "~missing"

type missingMode uint8

func (m missingMode) keyFor(context.Context, string) (string, verdict, error) {
	return missingKey, [...]verdict{charge, refuse, pass}[min(m, Skip)], nil
}

// FallbackTo asks key instead. If that has none either, the call shares the
// bucket of [Shared]. The two functions should not give equal keys for
// different callers; those of package keyfunc do not, but for rpckey.Service,
// whose keys look like any name that a caller may choose. It panics if key is
// nil.
func FallbackTo(key keyfunc.RPC) MissingKey {
	if key == nil {
		misuse("FallbackTo", "the key function is nil")
	}
	return fallback(key)
}

type fallback keyfunc.RPC

func (f fallback) keyFor(ctx context.Context, method string) (string, verdict, error) {
	key, err := f(ctx, method)
	if errors.Is(err, keyfunc.ErrNoKey) {
		return missingKey, charge, nil
	}
	return key, charge, err
}

// WithMissingKey sets what becomes of a call without the identity that the key
// function looks for ([keyfunc.ErrNoKey]). The default is Shared. Other errors
// of the key function are the business of [WithOnError].
func WithMissingKey(p MissingKey) Option {
	return Option{"WithMissingKey", func(s *settings) error {
		s.missing = p
		return notNil(p == nil)
	}}
}

// identify returns the key of a call.
func (g *gate) identify(ctx context.Context, method string) (key string, v verdict, err error) {
	key, err = g.key(ctx, method)
	if err != nil && errors.Is(err, keyfunc.ErrNoKey) {
		return g.missing.keyFor(ctx, method)
	}
	return key, charge, err
}

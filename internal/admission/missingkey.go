package admission

import (
	"errors"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/keyfunc"
)

// MissingKey selects the treatment of calls without a key: a MissingMode or the
// result of FallbackTo.
type MissingKey[C any] interface {
	// keyFor returns the key to use instead, if mode is Shared.
	keyFor(call C) (key string, mode uint8, err error)
}

// The values of a MissingMode. They are untyped, so that the adapters can
// declare them for their types of calls.
const (
	Shared = iota // charge the key MissingName
	Deny          // deny the call
	Skip          // let the call pass, not limited
)

// MissingName is the key that calls without one share. The leading '~' keeps it
// apart from keys that clients send; see package keyfunc.
var MissingName = keytext.Missing.Key()

// MissingMode is a MissingKey that does not look for another key.
type MissingMode[C any] uint8

func (m MissingMode[C]) keyFor(C) (string, uint8, error) {
	return MissingName, uint8(min(m, Skip)), nil
}

// DenyWith is Deny with the status of the answer, as a number of the protocol.
type DenyWith[C any] int

func (DenyWith[C]) keyFor(C) (string, uint8, error) { return "", Deny, nil }

// MissingStatus is the status of the answer to a call without a key.
func (p *Policy[C]) MissingStatus(standard int) int {
	if status, ok := p.Missing.(DenyWith[C]); ok {
		return int(status)
	}
	return standard
}

type fallback[C any] func(C) (string, error)

// FallbackTo uses another key function. If that finds no key either, the call
// is charged to MissingName. It panics if key is nil.
func FallbackTo[C any](a Adapter, key func(C) (string, error)) MissingKey[C] {
	a.Require(key != nil, "FallbackTo", "the key function is nil")
	return fallback[C](key)
}

func (f fallback[C]) keyFor(call C) (string, uint8, error) {
	key, err := f(call)
	if isNoKey(err) {
		return MissingName, Shared, nil
	}
	return key, Shared, err
}

func isNoKey(err error) bool { return errors.Is(err, keyfunc.ErrNoKey) }

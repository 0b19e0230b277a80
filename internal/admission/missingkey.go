package admission

import (
	"errors"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/keyfunc"
)

// The treatments of calls without a key, beside a status of the answer. They are no status of
// either protocol.
const (
	Shared = 1000 + iota // charge the key MissingName
	Skip                 // let the call pass, not limited
)

// MissingName is the key that calls without one share. The leading '~' keeps it
// apart from keys that clients send; see package keyfunc.
var MissingName = keytext.Missing.Key()

func isNoKey(err error) bool { return errors.Is(err, keyfunc.ErrNoKey) }

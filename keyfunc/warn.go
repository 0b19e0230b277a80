package keyfunc

import (
	"log/slog"
	"sync/atomic"
)

// warning is a finding about the configuration. It is logged once in the life
// of the process, through slog.Default, with a code that stays the same in
// all versions. Nothing from a request is in it.
type warning struct {
	code, message string
	logged        atomic.Bool
}

var (
	warnIgnored = &warning{
		code:    "keyfunc.forwarded_untrusted",
		message: "a request came with a forwarding header, but no proxy is trusted, so the header is ignored: behind a proxy, all clients share its key",
	}
	warnTrustsAll = &warning{
		code:    "keyfunc.trusts_all",
		message: "every peer and every hop is trusted: any client can choose its own key",
	}
)

// pending reports whether the warning has not been logged yet.
func (w *warning) pending() bool { return !w.logged.Load() }

func (w *warning) log() {
	if w.logged.CompareAndSwap(false, true) {
		slog.Warn(w.message, "code", w.code)
	}
}

package clientip

import (
	"log/slog"
	"sync/atomic"
)

// warning is a problem of the configuration. It is logged once in the life
// of the process, through slog.Default, with a code that stays the same in
// all versions. It contains nothing from a request.
type warning struct {
	code, message string
	logged        atomic.Bool
}

var (
	warnIgnored = &warning{
		code:    "keyfunc.forwarded_untrusted",
		message: "forwarding header ignored because no proxy is trusted; behind a proxy all clients share one key: pass the addresses of your proxies to the key function",
	}
	warnTrustsAll = &warning{
		code:    "keyfunc.trusts_all",
		message: "IPConfig.TrustAll without Hops: any client can choose its own key; list your proxies in IPConfig.Trusted",
	}
)

// pending reports whether the warning has not been logged yet.
func (w *warning) pending() bool { return !w.logged.Load() }

func (w *warning) log() {
	if w.logged.CompareAndSwap(false, true) {
		slog.Warn(w.message, "code", w.code)
	}
}

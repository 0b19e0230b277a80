package httpmw

import (
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"
)

// warning is a finding about the configuration. It is logged once in the life
// of the process, through slog.Default, with a code that stays the same in
// all versions. Nothing of a request is in it.
type warning struct {
	code, message string
	logged        atomic.Bool
}

var (
	warnTwice = &warning{
		code:    "httpmw.policy_twice",
		message: "a request passed two limits of the same name and size: one limiter wired twice charges every request twice, and two limiters want two names",
	}
	warnRebuilt = &warning{
		code:    "httpmw.built_per_request",
		message: "nearly every middleware has served one request only: build the middleware once, not for each request",
	}
)

func (w *warning) log(args ...any) {
	if !w.logged.Load() && w.logged.CompareAndSwap(false, true) {
		slog.Warn(w.message, append([]any{"code", w.code}, args...)...)
	}
}

// warnIfTwice looks for the policy among those that the request has passed.
func warnIfTwice(passed []string, policy string) {
	if slices.Contains(passed, policy) {
		warnTwice.log("policy", policy)
	}
}

// warnIfNested sees at wiring what warnIfTwice would see on a request, also
// where no fields are sent.
func (g *guard) warnIfNested(next http.Handler) {
	inner, ok := next.(*handler)
	if !ok {
		return
	}
	for _, a := range g.rules {
		for _, b := range inner.rules {
			if sameLimiter(a, b) {
				warnTwice.log("policy", a.name)
			}
		}
	}
}

// built counts the middlewares that have served a request, and those that have
// served a second one.
var built struct{ first, second atomic.Int64 }

// manyBuilt is how many middlewares must have served before anything is
// concluded from it: more than a service has routes.
const manyBuilt = 1000

// countServed notices a middleware that is built for each request: its limiter
// may be as short-lived as itself. It costs a load from the third request on.
func (h *handler) countServed() {
	if h.served.Load() >= 2 {
		return
	}
	switch h.served.Add(1) {
	case 1:
		if n := built.first.Add(1); n >= manyBuilt && built.second.Load() < n/16 {
			warnRebuilt.log("middlewares", n)
		}
	case 2:
		built.second.Add(1)
	}
}

// failures limits the log of undecided requests to one line in 10 s.
var failures struct{ last atomic.Int64 }

const failureInterval = 10 * time.Second

// logFailure reports why requests cannot be decided; the client never sees it.
func logFailure(policy string, err error) {
	now, last := time.Now().UnixNano(), failures.last.Load()
	if now-last >= int64(failureInterval) && failures.last.CompareAndSwap(last, now) {
		slog.Error("a request could not be decided", "code", "httpmw.undecided", "policy", policy, "error", err)
	}
}

// sameLimiter compares pointers; limiters of other kinds may not be
// comparable.
func sameLimiter(a, b *rule) bool {
	return reflect.TypeOf(a.limiter).Kind() == reflect.Pointer && a.limiter == b.limiter
}

package httpmw

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/sluice-go/sluice/algo"
)

// Denial is what a handler given to [WithDenied] may want to know.
type Denial struct {
	// Status is 429 if the client has spent its quota, 503 if the server is
	// short of capacity or could not decide.
	Status int
	// Policy is the name of the limit, "" if the request could not be decided.
	Policy string
	// Decision is what the limiter said.
	Decision algo.Decision
}

type denialKey struct{}

// DenialFrom returns the denial that a handler given to [WithDenied] answers,
// false elsewhere.
func DenialFrom(ctx context.Context) (Denial, bool) {
	d, ok := ctx.Value(denialKey{}).(*Denial)
	if !ok {
		return Denial{}, false
	}
	return *d, true
}

// refusal is an answer to a request that must not go on.
type refusal struct {
	status   int
	policy   string // the name of the first limit that it violates
	retry    int64  // seconds of Retry-After; 0: never
	problem  string // body
	pushback int64  // of gRPC; 0: not worked out yet
}

// refuse writes the answer. The RateLimit fields are set already. Nothing of
// the request and no error's text is in it. (The decision is a parameter of its
// own because it would escape within the struct, and the lease with it.)
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, a refusal, decision *algo.Decision) {
	h := w.Header()
	delete(h, "Content-Length")
	values := &[4]string{"no-store", "nosniff", problemType, ""}
	h["Cache-Control"] = values[0:1:1]
	h["X-Content-Type-Options"] = values[1:2:2]
	if a.retry > 0 {
		values[3] = strconv.FormatInt(a.retry, 10)
		h[retryAfterField] = values[3:4:4]
	}
	if g.denied != nil {
		d := &Denial{Status: a.status, Policy: a.policy, Decision: *decision}
		g.denied.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), denialKey{}, d)))
		return
	}
	if p := protocolOf(r); p.kind != plainHTTP {
		p.refuse(w, r, a)
		return
	}
	body := a.problem
	if prefersText(r) {
		values[2], body = plainType, plainBody(a.status)
	}
	h["Content-Type"] = values[2:3:3]
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // a client that does not listen is its own loss
	}
}

// retrySeconds is Retry-After for a denial: at least 1, never below t, which
// is what RateLimit says, and spread so that clients do not come back all at
// once. It is 0 if no waiting helps.
func retrySeconds(d *algo.Decision, t int64) int64 {
	if d.Reason == algo.Never || d.RetryAfter == algo.Forever {
		return 0
	}
	return spread(max(seconds(d.RetryAfter), t, 1))
}

// spread adds up to 20 %, at most 5 s, in whole seconds. Only upwards: a
// client that came back earlier would be denied again.
func spread(s int64) int64 {
	if room := min(s/5, 5); room > 0 {
		return s + rand.Int64N(room+1)
	}
	return s
}

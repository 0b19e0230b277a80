package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// requireKeys answers requests without the key of one of the limits with 401:
// they lack an identity, and waiting does not give them one. Nothing is charged.
func (g *Gateway) requireKeys(r *config.Route, policies []httpmw.Policy, next http.Handler) http.Handler {
	observe := g.observer()
	challenge := challengeFor(r)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for i := range policies {
			if _, err := policies[i].Key(req); !errors.Is(err, keyfunc.ErrNoKey) {
				continue
			}
			observe(telemetry.Event{
				Context: req.Context(), At: time.Now(), Result: telemetry.Denied, Policy: policies[i].Name, Status: http.StatusUnauthorized,
				Decision: algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever},
			})
			w.Header().Set("WWW-Authenticate", challenge)
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"title":"Unauthorized","status":401}`+"\n") // a client that is gone needs no answer
			return
		}
		next.ServeHTTP(w, req)
	})
}

// challengeFor is the challenge of a 401 of the route (RFC 9110 section 11.6.1).
func challengeFor(r *config.Route) string {
	for _, l := range r.Limits {
		for _, k := range l.Keys {
			switch {
			case k.Kind == "jwt", strings.EqualFold(k.Name, "Authorization"):
				return "Bearer"
			case k.Kind == "header" || k.Kind == "secret":
				return `ApiKey name="` + k.Name + `"`
			}
		}
	}
	return "ApiKey"
}

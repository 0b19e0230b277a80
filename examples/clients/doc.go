// Package clients calls an API that limits its callers with five clients, each over one learned
// limit. A file for each shows all that it takes, with the client's own repetitions switched off.
package clients

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

// Call is one call of an API.
type Call func(context.Context) error

// Paced is the HTTP client beneath the others. It keeps the limit of a partner and the waits that
// the partner asks for in Retry-After, RateLimit and x-ratelimit fields.
func Paced(base http.RoundTripper, partner algo.Limiter) *http.Client {
	transport := client.Transport(base, partner, keyfunc.Global(), client.WithServerWait(client.QuotaWait))
	paced := &http.Client{Transport: transport, Timeout: time.Minute}
	return paced
}

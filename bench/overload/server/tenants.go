package main

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/adaptive"
	"google.golang.org/grpc/metadata"
)

func options() (all []adaptive.Option) {
	if *shares {
		all = append(all, adaptive.WithFairShares(weightOf))
	}
	return all
}

// weightOf is the number behind the colon of a name.
func weightOf(tenant string) float64 {
	_, after, _ := strings.Cut(tenant, ":")
	w, _ := strconv.ParseFloat(after, 64)
	return w
}

// httpTenant is the key of a request: its tenant, "" without one.
func httpTenant(r *http.Request) (string, error) { return r.Header.Get("X-Tenant"), nil }

func rpcTenant(ctx context.Context, _ string) (string, error) {
	if values := metadata.ValueFromIncomingContext(ctx, "x-tenant"); len(values) > 0 {
		return values[0], nil
	}
	return "", nil
}

// costOf is how often the work is done: 1 without a number.
func costOf(header string) int {
	n, _ := strconv.Atoi(header)
	return max(n, 1)
}

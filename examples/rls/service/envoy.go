package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluice-go/sluice/algo"
)

// banned is a limit of no requests: it denies every cost, and looking too.
type banned struct{}

// Acquire denies.
func (banned) Acquire(_ context.Context, _ string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	lease.Decision = algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever}
	return lease, nil
}

// replace leaves out the limits that another descriptor of the same request
// replaces.
func replace(all []asked) {
	var gone []string
	for i := range all {
		if all[i].node != nil {
			gone = append(gone, all[i].node.Replaces...)
		}
	}
	if len(gone) == 0 {
		return
	}
	for i := range all {
		if n := all[i].node; n != nil && n.Label != "" && slices.Contains(gone, n.Label) {
			all[i].limit = nil
		}
	}
}

// detailed is the name of a limit in metrics with the values of a descriptor. Values
// come from clients: otelmetrics counts those beyond its bound together.
func detailed(l *limit, r *ratelimit.RateLimitDescriptor) string {
	var b strings.Builder
	b.WriteString(l.name)
	for _, e := range r.GetEntries() {
		fmt.Fprintf(&b, ".%.64s_%.64s", e.GetKey(), e.GetValue())
	}
	return strings.ToValidUTF8(b.String(), "?")
}

package service

import (
	"fmt"
	"slices"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

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

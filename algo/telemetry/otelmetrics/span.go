package otelmetrics

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-go/sluice/algo/telemetry"
)

// describe sets attributes of the request's span, if that is recorded.
func describe(e *telemetry.Event, result int) {
	if e.Context == nil {
		return
	}
	span := trace.SpanFromContext(e.Context)
	if !span.IsRecording() {
		return
	}
	prefix := "ratelimit.policy." + harmless(e.Policy)
	all := []attribute.KeyValue{attribute.String(prefix+".outcome", results[result].outcome)}
	if reason := results[result].reason; reason != "" {
		all = append(all, attribute.String(prefix+".reason", reason))
	}
	if e.Decision.Limit > 0 {
		all = append(all, attribute.Int64(prefix+".limit", e.Decision.Limit), attribute.Int64(prefix+".remaining", e.Decision.Remaining))
	}
	span.SetAttributes(all...)
}

package otelmetrics

import (
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// results has the values of the attributes ratelimit.outcome and ratelimit.reason.
var results = [...]struct{ outcome, reason string }{
	{"allowed", ""}, {"canceled", ""}, {"failed_open", ""}, {"failed_closed", ""},
	{"denied", "quota"}, {"denied", "overload"}, {"denied", "banned"}, {"denied", "never"},
	{"shadowed", "quota"}, {"shadowed", "overload"}, {"shadowed", "banned"}, {"shadowed", "never"},
	{"off", ""}, {"unknown", ""},
}

// resultOf returns an index into results.
func resultOf(e *telemetry.Event) int {
	switch e.Result {
	case telemetry.Allowed:
		if e.Decision.Trial != algo.Admitted {
			return 8 + indexOf(e.Decision.Trial)
		}
		if e.Decision.Source == algo.SourceOff {
			return 12
		}
		return 0
	case telemetry.Canceled:
		return 1
	case telemetry.FailedOpen:
		return 2
	case telemetry.FailedClosed:
		return 3
	case telemetry.Denied:
		return 4 + indexOf(e.Decision.Reason)
	}
	return len(results) - 1
}

func indexOf(r algo.Reason) int {
	return int(min(max(r, algo.Quota), algo.Never) - algo.Quota)
}

// transports has the values of the attribute ratelimit.transport, at twice the transport,
// and one more for outgoing requests.
var transports = [4]string{"http", "http-client", "grpc", "grpc-client"}

func transportOf(e *telemetry.Event) int {
	i := 0
	if e.Transport == telemetry.GRPC {
		i = 2
	}
	if e.Client {
		i++
	}
	return i
}

// policyKey is the attribute with the name of a limit.
const policyKey = attribute.Key("ratelimit.policy")

// policy has the attributes of one policy, made on first use.
type policy struct {
	name string
	made [len(transports)]atomic.Pointer[series]
}

// series has the options of the calls for one policy and transport, as slices,
// because an argument list made for the call would be allocated.
type series struct {
	results [len(results)][]metric.AddOption
	add     []metric.AddOption
	record  []metric.RecordOption
}

func (p *policy) series(e *telemetry.Event) *series {
	at := &p.made[transportOf(e)]
	if s := at.Load(); s != nil {
		return s
	}
	s := newSeries(p.name, transports[transportOf(e)])
	at.Store(s) // one made concurrently is the same
	return s
}

func newSeries(name, transport string) *series {
	s := new(series)
	pair := []attribute.KeyValue{policyKey.String(name), attribute.String("ratelimit.transport", transport)}
	set := metric.WithAttributeSet(attribute.NewSet(pair...))
	s.add, s.record = []metric.AddOption{set}, []metric.RecordOption{set}
	for i, result := range results {
		all := []attribute.KeyValue{pair[0], pair[1], attribute.String("ratelimit.outcome", result.outcome)}
		if result.reason != "" {
			all = append(all, attribute.String("ratelimit.reason", result.reason))
		}
		s.results[i] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(all...))}
	}
	return s
}

// harmless makes any name a value that exporters accept. The adapters check
// names, other sources of events may not.
func harmless(name string) string {
	const longest = 64
	return strings.ToValidUTF8(name[:min(len(name), longest)], "?")
}

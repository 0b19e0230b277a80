package admin

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo/telemetry"
)

// decisionText is one of the last decisions, with the fields that were sent.
type decisionText struct {
	Time      int64    `json:"time"` // Unix time in ms
	Policy    string   `json:"policy"`
	Transport string   `json:"transport"`
	Client    bool     `json:"client"`
	Method    string   `json:"method"`
	Kind      string   `json:"kind"`
	Result    string   `json:"result"`
	Reason    string   `json:"reason"`
	Source    string   `json:"source"`
	Status    int      `json:"status"`
	Cost      int64    `json:"cost"`
	Limit     int64    `json:"limit"`
	Remaining int64    `json:"remaining"`
	Delay     seconds  `json:"delay"`
	Retry     seconds  `json:"retry"`
	Waited    seconds  `json:"waited"`
	Hash      string   `json:"hash"`
	Key       string   `json:"key"`
	Sent      []string `json:"sent"` // lines, as on the wire
	Err       string   `json:"err"`
}

func textOf(t *stored) decisionText {
	e, d := &t.event, &t.event.Decision
	return decisionText{
		Time: e.At.UnixMilli(), Policy: e.Policy, Transport: e.Transport.String(), Client: e.Client, Method: e.Method,
		Kind: kindNames[t.kind], Result: e.Result.String(), Reason: d.Reason.String(), Source: d.Source.String(),
		Status: e.Status, Cost: e.Cost, Limit: d.Limit, Remaining: d.Remaining,
		Delay: seconds(d.Delay), Retry: seconds(d.RetryAfter), Waited: seconds(e.Waited),
		Hash: hashText(e.KeyHash), Sent: sentLines(e), Err: t.err,
	}
}

// sentLines writes the limit in an answer as the fields or trailers
// that it was said in. RetryInfo is a detail of a gRPC status.
func sentLines(e *telemetry.Event) []string {
	s := &e.Sent
	lines := []string{}
	add := func(format string, v any) { lines = append(lines, fmt.Sprintf(format, v)) }
	names := [2]string{"RateLimit-Policy: ", "RateLimit: "}
	if s.Reset != "" || s.Policy != "" && !strings.HasPrefix(s.Policy, `"`) {
		names = [2]string{"X-RateLimit-Limit: ", "X-RateLimit-Remaining: "}
	}
	if s.Policy != "" {
		add(names[0]+"%s", s.Policy)
	}
	if s.Limit != "" {
		add(names[1]+"%s", s.Limit)
	}
	if s.Reset != "" {
		add("X-RateLimit-Reset: %s", s.Reset)
	}
	switch {
	case s.RetryAfter > 0 && e.Transport == telemetry.GRPC:
		add("RetryInfo: %v", s.RetryAfter)
	case s.RetryAfter > 0:
		add("Retry-After: %d", int64(s.RetryAfter/time.Second))
	}
	if s.Pushback != 0 {
		add("grpc-retry-pushback-ms: %d", s.Pushback)
	}
	return lines
}

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// topic is what a line is about.
type topic uint8

const (
	silent topic = iota
	denied
	shadowed
	failedOpen
	failedClosed
	fallback
	others // what has found no slot
)

// topics are the codes and messages, by topic.
var topics = [...]struct{ code, message string }{
	denied:       {"telemetry.denied", "requests denied"},
	shadowed:     {"telemetry.shadowed", "requests that a limit on trial would have denied"},
	failedOpen:   {"telemetry.failed-open", "requests let through undecided"},
	failedClosed: {"telemetry.failed-closed", "requests refused undecided"},
	fallback:     {"telemetry.fallback", "decisions taken locally, the shared store is away"},
	others:       {"telemetry.others", "more keys or policies than are counted one by one"},
}

func topicOf(e *Event) topic {
	switch e.Result {
	case Denied:
		return denied
	case FailedOpen:
		return failedOpen
	case FailedClosed:
		return failedClosed
	case Allowed:
		if e.Shadowed() {
			return shadowed
		}
	}
	return silent
}

// sample counts e, and writes a line if it is the first in the interval.
func (l *Log) sample(s *sampler, now time.Duration, of subject, e *Event) {
	if !l.logger.Enabled(context.Background(), l.levels.of(of.topic)) {
		return
	}
	found := sample{subject: of, transport: e.Transport, client: e.Client, reason: e.Why()}
	as, before, tell := s.add(now, found)
	if !tell {
		return
	}
	found.subject, found.count = as, before+1
	attrs := found.attrs()
	if e.Method != "" {
		attrs = append(attrs, slog.String("method", clean(e.Method)))
	}
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	}
	if e.Sent.RetryAfter > 0 {
		attrs = append(attrs, slog.Float64("retry_after", e.Sent.RetryAfter.Seconds()))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("cause", cause(e.Err)))
	}
	l.write(as.topic, attrs)
}

// sweep writes the count of a subject whose interval is over, or of any, and
// reports whether there was one.
func (l *Log) sweep(s *sampler, now time.Duration, all bool) bool {
	found, ok := s.expired(now, all)
	if ok && found.count > 0 {
		l.write(found.topic, found.attrs())
	}
	return ok
}

func (l *Log) write(t topic, attrs []slog.Attr) {
	l.logger.LogAttrs(context.Background(), l.levels.of(t), topics[t].message, attrs...)
}

// attrs are what every line has.
func (s *sample) attrs() []slog.Attr {
	attrs := append(make([]slog.Attr, 0, 12), slog.String("code", topics[s.topic].code))
	if s.topic != others {
		attrs = append(attrs, slog.String("policy", clean(s.policy)))
	}
	if s.key != 0 {
		attrs = append(attrs, slog.String("key", fmt.Sprintf("%016x", s.key)))
	}
	attrs = append(attrs, slog.String("transport", s.transport.String()), slog.Bool("client", s.client))
	if s.reason != algo.Admitted {
		attrs = append(attrs, slog.String("reason", s.reason.String()))
	}
	return append(attrs, slog.Int64("count", s.count))
}

// longest is how much of a string from outside is written, in bytes.
const longest = 128

// clean makes a string from outside harmless for any handler.
func clean(s string) string {
	if len(s) > longest {
		s = s[:longest] + "..."
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\=`, r) }
	if strings.ContainsFunc(s, odd) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// cause is the type of the innermost error.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

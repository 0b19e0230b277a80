package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/warning"
	"github.com/sluice-go/sluice/keyfunc"
)

// topic is the subject matter of a line.
type topic uint8

const (
	silent topic = iota
	denied
	shadowed
	failedOpen
	failedClosed
	fallback
	others // keys and policies without a slot
)

// topics has the codes and messages by topic.
var topics = [...]struct{ code, message string }{
	denied:       {"telemetry.denied", "requests denied"},
	shadowed:     {"telemetry.shadowed", "requests that a shadow limit would have denied"},
	failedOpen:   {"telemetry.failed-open", "requests admitted without a decision, because the limiter failed"},
	failedClosed: {"telemetry.failed-closed", "requests denied without a decision, because the limiter failed"},
	fallback:     {"telemetry.fallback", "requests decided locally, because the shared store is unavailable"},
	others:       {"telemetry.others", "decisions of keys and policies beyond those counted separately; raise Keys"},
}

// levels has the level of each line, Info unless it is stated. Decisions below the level of the
// logger are not counted.
var levels = [...]slog.Level{failedOpen: slog.LevelWarn, failedClosed: slog.LevelError, fallback: slog.LevelWarn, others: slog.LevelInfo}

func topicOf(e *telemetry.Event) topic {
	switch e.Result {
	case telemetry.Denied:
		return denied
	case telemetry.FailedOpen:
		return failedOpen
	case telemetry.FailedClosed:
		return failedClosed
	case telemetry.Allowed:
		if e.Decision.Trial != algo.Admitted {
			return shadowed
		}
	}
	return silent
}

// reasonOf is the reason of a denial, or of the one that a limit on trial would have made.
func reasonOf(e *telemetry.Event) algo.Reason {
	switch e.Result {
	case telemetry.Denied:
		return e.Decision.Reason
	case telemetry.Allowed:
		return e.Decision.Trial
	}
	return algo.Admitted
}

// sample counts e, and writes a line if it is the first in the interval.
func (l *Log) sample(s *sampler, now time.Duration, of subject, e *telemetry.Event) {
	if !l.logger.Enabled(context.Background(), levels[of.topic]) {
		return
	}
	found := sample{subject: of, transport: e.Transport, client: e.Client, reason: reasonOf(e), cause: e.Decision.Cause}
	as, before, write := s.add(now, found)
	if !write {
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
	if e.Rate > 0 {
		attrs = append(attrs, slog.Float64("rate", e.Rate))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", kindOf(e.Err)))
	}
	l.write(as.topic, attrs)
}

// sweep writes the count of a subject with an expired interval, or of any
// subject if all is true, and reports whether there was one.
func (l *Log) sweep(s *sampler, now time.Duration, all bool) bool {
	found, ok := s.expired(now, all)
	if ok && found.count > 0 {
		l.write(found.topic, found.attrs())
	}
	return ok
}

func (l *Log) write(t topic, attrs []slog.Attr) {
	l.logger.LogAttrs(context.Background(), levels[t], topics[t].message, attrs...)
}

// attrs returns the attributes of every line.
func (s *sample) attrs() []slog.Attr {
	attrs := append(make([]slog.Attr, 0, 12), slog.String("code", topics[s.topic].code))
	if s.topic != others {
		attrs = append(attrs, slog.String("policy", clean(s.policy)))
	}
	if s.key != 0 {
		text := fmt.Sprintf("%016x", s.key)
		if s.key == keyfunc.Hash(missing) {
			text = missing
		}
		attrs = append(attrs, slog.String("key", text))
	}
	attrs = append(attrs, slog.String("transport", s.transport.String()), slog.Bool("client", s.client))
	if s.reason != algo.Admitted {
		attrs = append(attrs, slog.String("reason", s.reason.String()))
	}
	if s.cause != 0 {
		attrs = append(attrs, slog.String("cause", s.cause.String()))
	}
	return append(attrs, slog.Int64("count", s.count))
}

const missing = "~missing" // see package keyfunc

// clean makes an untrusted string harmless for any handler.
func clean(s string) string {
	s = warning.Clip(s, warning.Longest)
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\=`, r) }
	if strings.ContainsFunc(s, odd) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// kindOf returns the type of the innermost error.
func kindOf(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

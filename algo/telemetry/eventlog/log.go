// Package eventlog logs the denials and failures of the adapters to log/slog, at
// a bounded rate, and by [Warnings] the problems in the use of the module. It is a
// package of its own so that programs without it do not link log/slog.
package eventlog

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/option"
)

// Log writes denials and failures to a structured log, at a bounded rate. Use its
// method Observe:
//
//	denials, err := eventlog.New(slog.Default())
//	handler = httpmw.Limit(users, key, httpmw.WithObserver(denials.Observe))(handler)
//
// The first denial of a key by a policy is written at once. Further ones within
// the interval are counted. The count is written with the next line of the key,
// or by the first event of any kind after the interval. The same applies, for
// each policy, to requests without a decision because the limiter failed, and to
// local decisions because the shared store was unavailable: the first line
// reports the beginning, and then there is one line an interval. Admissions write
// nothing.
//
// Memory is bounded: 256 slots ([Keys]) of some 200 bytes. So is the output: at
// most two lines a slot in an interval of 10 s ([Interval]), and at most five
// lines for one event. Denials of keys without a slot share one subject, with the
// code telemetry.others.
//
// A line has these attributes:
//
//   - code: telemetry.denied, telemetry.shadowed, telemetry.failed-open,
//     telemetry.failed-closed, telemetry.fallback or telemetry.others;
//   - policy, transport, client, and count, the number of decisions;
//   - if they apply: key, the hash of the key in 16 hexadecimal digits, or ~missing of requests
//     without the identity that the limit counts by, reason,
//     method, status, retry_after in seconds, learned rate, cause, for which the
//     limiter denied (queue, processor, ...), and error, the type of an error.
//
// The text of an error may contain input of the client; the adapters log it
// separately. Untrusted strings are cut at 128 bytes and quoted if they are not
// printable, so that they cannot forge lines.
//
// Log starts no goroutine. Call [Log.Flush] when the server has stopped. It is
// safe for concurrent use.
type Log struct {
	logger   *slog.Logger
	start    time.Time
	keys     *sampler
	policies *sampler
}

// mostPolicies is the number of pairs of policy and topic with lines of their
// own, for failures and fallbacks.
const mostPolicies = 64

// New makes a Log. The error names the option and its invalid value.
func New(l *slog.Logger, opts ...Option) (*Log, error) {
	if l == nil {
		return nil, errors.New("eventlog: New: the logger is nil")
	}
	c := config{interval: 10 * time.Second, keys: 256}
	if err := option.Apply(&c, opts, Option.split, nil); err != nil {
		return nil, fmt.Errorf("eventlog: New: %w", err)
	}
	return &Log{
		logger: l, start: time.Now(),
		keys: newSampler(c.interval, c.keys), policies: newSampler(c.interval, mostPolicies),
	}, nil
}

// Observe is an [telemetry.Observer] that logs e.
func (l *Log) Observe(e telemetry.Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	now := e.At.Sub(l.start)
	switch t := topicOf(&e); t {
	case silent:
	case denied, shadowed:
		l.sample(l.keys, now, subject{t, e.Policy, e.KeyHash}, &e)
	default:
		l.sample(l.policies, now, subject{t, e.Policy, 0}, &e)
	}
	if e.Decision.Source == algo.SourceFallback {
		l.sample(l.policies, now, subject{fallback, e.Policy, 0}, &e)
	}
	// Two for one that an event can add, so that the table empties.
	for range 2 {
		l.sweep(l.keys, now, false)
	}
	l.sweep(l.policies, now, false)
}

// Flush writes all counts that are not written yet.
func (l *Log) Flush() {
	now := time.Since(l.start)
	for _, s := range []*sampler{l.keys, l.policies} {
		for l.sweep(s, now, true) {
		}
	}
}

package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Log writes to a structured log whom a limit denies, without being flooded by
// those who are. Use its method Observe:
//
//	denials, err := telemetry.NewLog(slog.Default())
//	handler = httpmw.Limit(users, key, httpmw.WithObserver(denials.Observe))(handler)
//
// The first denial of a key by a policy is written at once. Further ones within
// the interval are counted, and the count is told with the next line of the key,
// or when the interval is over, by whatever event comes then. The same holds, for
// each policy, of requests that were let through or refused because they could not
// be decided, and of decisions taken locally because the shared store was away:
// the first such line says that it has begun, and as long as it goes on there is
// one an interval. Admissions write nothing.
//
// Memory is bounded: a slot for each of 256 keys ([LogKeys]), some 200 bytes, and
// so is the log: at most two lines for each slot in an interval of 10 s
// ([LogInterval]). Denials of keys that find no slot are written as one subject,
// with code telemetry.others. At most five lines are written by one event.
//
// A line has the code (telemetry.denied, telemetry.shadowed, telemetry.failed-open,
// telemetry.failed-closed, telemetry.fallback, telemetry.others), the policy, the
// transport and its side, the count of decisions that it speaks of, and where they
// make sense the hash of the key in 16 hexadecimal digits, the reason, the
// method, the status and the wait that was asked for, in seconds. Of an error it has the type only: the
// text may hold what a client sent, and the adapters log it by themselves. What
// comes from outside is cut at 128 bytes and quoted if it is not printable, so
// that no handler can be made to write a line that is not its own.
//
// There is no goroutine. Call [Log.Flush] when the server has stopped. It is safe
// for concurrent use.
type Log struct {
	logger   *slog.Logger
	levels   Levels
	start    time.Time
	keys     *sampler
	policies *sampler
}

// mostPolicies is how many policies get lines of their own for failures and
// fallbacks, times the topics.
const mostPolicies = 64

// NewLog makes a Log. The error names the option that is out of range.
func NewLog(l *slog.Logger, opts ...LogOption) (*Log, error) {
	if l == nil {
		return nil, errors.New("telemetry: NewLog: the logger is nil")
	}
	c := logDefaults()
	for _, o := range opts {
		if o.apply == nil {
			return nil, errors.New("telemetry: NewLog: the zero LogOption is not an option")
		}
		if err := o.apply(&c); err != nil {
			return nil, fmt.Errorf("telemetry: NewLog: %s: %w", o.name, err)
		}
	}
	return &Log{
		logger: l, levels: c.levels, start: time.Now(),
		keys: newSampler(c.interval, c.keys), policies: newSampler(c.interval, mostPolicies),
	}, nil
}

// Observe is an [Observer].
func (l *Log) Observe(e Event) {
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
	// More than one event can add, so that the table gets empty.
	for range 2 {
		l.sweep(l.keys, now, false)
	}
	l.sweep(l.policies, now, false)
}

// Flush writes what has been counted and not been told.
func (l *Log) Flush() {
	now := time.Since(l.start)
	for _, s := range []*sampler{l.keys, l.policies} {
		for l.sweep(s, now, true) {
		}
	}
}

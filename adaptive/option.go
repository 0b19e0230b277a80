package adaptive

import (
	"time"

	"github.com/sluice-go/sluice/internal/wiring"
)

// Option adjusts a limiter or a strategy at construction. An option that does not
// belong to the constructor, or is given twice, is an error that names both.
type Option = wiring.Option

// WithLimits keeps the limit within min and max, both included: 1 <= min <= max
// <= 2147483647. Each constructor states its default.
func WithLimits(min, max int) Option {
	return wiring.With("WithLimits", wiring.Limits{Min: min, Max: max})
}

// WithTarget sets the response time beyond which an answer is useless, 1 ms to 1 h.
// The default is 500 ms.
func WithTarget(d time.Duration) Option { return wiring.With("WithTarget", d) }

// WithHook calls f with the state of a strategy whenever its limit begins or ends, or has another
// cause: State.Cause says why, with the numbers. The goroutine of a request calls it, so f must not
// block; calls may overlap. A change is at least 5 ms after the last one of the same strategy.
func WithHook(f func(State)) Option { return wiring.With("WithHook", f) }

const defaultTarget = 500 * time.Millisecond

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

// WithHook calls f with a strategy's state whenever its limit begins, ends or changes its cause;
// State.Cause gives the reason with the numbers. f runs on a request's goroutine, so it must not
// block; calls may overlap. Changes of one strategy are at least 5 ms apart.
func WithHook(f func(State)) Option { return wiring.With("WithHook", f) }

const defaultTarget = 500 * time.Millisecond

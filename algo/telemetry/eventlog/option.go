package eventlog

import (
	"fmt"
	"log/slog"
	"time"
)

// Option adjusts a [Log].
type Option struct {
	name  string
	apply func(*config) error
}

type config struct {
	interval time.Duration
	keys     int
	levels   Levels
}

func defaults() config {
	return config{interval: 10 * time.Second, keys: 256, levels: Levels{
		Denied: slog.LevelInfo, Shadowed: slog.LevelInfo,
		FailedOpen: slog.LevelWarn, FailedClosed: slog.LevelError, Fallback: slog.LevelWarn,
	}}
}

// Interval sets the time between two lines of a key: more than 0, at most 24 h.
// Denials in between are counted. The default is 10 s.
func Interval(d time.Duration) Option {
	return Option{"Interval", func(c *config) error {
		c.interval = d
		if d <= 0 || d > 24*time.Hour {
			return fmt.Errorf("is %v, want more than 0, at most 24h", d)
		}
		return nil
	}}
}

// Keys sets the number of pairs of key and policy that are counted
// separately, 1 to 1048576. The default is 256.
func Keys(n int) Option {
	return Option{"Keys", func(c *config) error {
		c.keys = n
		if n < 1 || n > 1<<20 {
			return fmt.Errorf("is %d, want 1 to 1048576", n)
		}
		return nil
	}}
}

// AtLevels sets the levels of the lines.
func AtLevels(l Levels) Option {
	return Option{"AtLevels", func(c *config) error {
		c.levels = l
		return nil
	}}
}

// Levels has the levels of the lines of a [Log]. Decisions below the level of the
// logger are not counted.
type Levels struct {
	// Denied is for denied requests, and for the code telemetry.others. The
	// default is Info.
	Denied slog.Level
	// Shadowed is for requests that a shadow limit would have denied. The default
	// is Info.
	Shadowed slog.Level
	// FailedOpen is for requests admitted without a decision. The default is
	// Warn.
	FailedOpen slog.Level
	// FailedClosed is for requests denied without a decision. The default is
	// Error.
	FailedClosed slog.Level
	// Fallback is for decisions without the shared store. The default is Warn.
	Fallback slog.Level
}

func (l *Levels) of(t topic) slog.Level {
	switch t {
	case shadowed:
		return l.Shadowed
	case failedOpen:
		return l.FailedOpen
	case failedClosed:
		return l.FailedClosed
	case fallback:
		return l.Fallback
	}
	return l.Denied
}

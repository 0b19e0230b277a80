package telemetry

import (
	"fmt"
	"log/slog"
	"time"
)

// LogOption adjusts a [Log].
type LogOption struct {
	name  string
	apply func(*logConfig) error
}

type logConfig struct {
	interval time.Duration
	keys     int
	levels   Levels
}

func logDefaults() logConfig {
	return logConfig{interval: 10 * time.Second, keys: 256, levels: Levels{
		Denied: slog.LevelInfo, Shadowed: slog.LevelInfo,
		FailedOpen: slog.LevelWarn, FailedClosed: slog.LevelError, Fallback: slog.LevelWarn,
	}}
}

// LogInterval sets for how long the denials of a key are counted after one was
// written, above 0 and at most 24 h. The default is 10 s.
func LogInterval(d time.Duration) LogOption {
	return LogOption{"LogInterval", func(c *logConfig) error {
		c.interval = d
		if d <= 0 || d > 24*time.Hour {
			return fmt.Errorf("is %v, want above 0 and at most 24h", d)
		}
		return nil
	}}
}

// LogKeys sets for how many pairs of key and policy denials are counted at a
// time, 1 to 1048576. The default is 256.
func LogKeys(n int) LogOption {
	return LogOption{"LogKeys", func(c *logConfig) error {
		c.keys = n
		if n < 1 || n > 1<<20 {
			return fmt.Errorf("is %d, want 1 to 1048576", n)
		}
		return nil
	}}
}

// LogLevels sets the levels of the lines.
func LogLevels(l Levels) LogOption {
	return LogOption{"LogLevels", func(c *logConfig) error {
		c.levels = l
		return nil
	}}
}

// Levels are the levels of the lines of a [Log]. What its logger is not enabled
// for is not counted either.
type Levels struct {
	// Denied is for requests that a limit had no room for; the default is Info.
	// Lines for what finds no slot have it too.
	Denied slog.Level
	// Shadowed is for what a limit on trial would have denied; Info.
	Shadowed slog.Level
	// FailedOpen is for what passed because it could not be decided; Warn.
	FailedOpen slog.Level
	// FailedClosed is for what was refused because it could not be decided;
	// Error.
	FailedClosed slog.Level
	// Fallback is for decisions without the shared store; Warn.
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

package eventlog

import (
	"fmt"
	"time"
)

// Option adjusts a [Log].
type Option struct {
	name  string
	apply func(*config) error
}

func (o Option) split() (string, func(*config) error) { return o.name, o.apply }

type config struct {
	interval time.Duration
	keys     int
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

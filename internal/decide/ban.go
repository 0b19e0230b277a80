package decide

import (
	"fmt"
	"time"
)

// MaxDenials and MaxBan bound the denials that cause a ban and its length: a word of a table has
// room for them.
const (
	MaxDenials = 1<<20 - 1
	MaxBan     = 90 * Day
)

// CheckBan checks a ban after denials in a period, first to longest long.
func CheckBan(denials int64, period, first, longest time.Duration) error {
	switch {
	case denials < 1 || denials > MaxDenials:
		return fmt.Errorf("denials: count is %d, want 1 to %d", denials, MaxDenials)
	case period < time.Millisecond || period > MaxSpan:
		return fmt.Errorf("denials: period is %v, want %v to %v", period, time.Millisecond, MaxSpan)
	case first <= 0:
		return fmt.Errorf("first ban is %v, want more than 0", first)
	case longest < first:
		return fmt.Errorf("longest ban is %v, want %v (the first ban) or more", longest, first)
	case longest > MaxBan:
		return fmt.Errorf("longest ban is %v, want at most %v", longest, MaxBan)
	}
	return nil
}

package algo

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// denialCounter counts denials in one word: the end of the period in steps of
// 16 microseconds, and below it the count. So the word is an instant in ticks,
// as a store needs it: one in the past is equivalent to none.
type denialCounter struct {
	limit  int64
	period int64 // steps
}

const (
	denialBits = 20 // of the count; 2^20 ticks are a step
	maxDenials = 1<<denialBits - 1
)

func newDenialCounter(r Rate) (denialCounter, error) {
	switch {
	case r.Count < 1 || r.Count > maxDenials:
		return denialCounter{}, fmt.Errorf("denials: count is %d, want 1 to %d", r.Count, maxDenials)
	case r.Period < time.Millisecond || r.Period > decide.MaxSpan:
		return denialCounter{}, fmt.Errorf("denials: period is %v, want %v to %v", r.Period, time.Millisecond, decide.MaxSpan)
	}
	return denialCounter{r.Count, keystore.ToTicks(r.Period) >> denialBits}, nil
}

// add counts one denial and reports whether it completes the limit, after
// which the count begins again.
func (c *denialCounter) add(word, now int64) (next int64, complete bool) {
	step := now >> denialBits
	end, count := word>>denialBits, word&maxDenials
	if end <= step {
		end, count = min(step+c.period, math.MaxInt64>>denialBits), 0
	}
	if count++; count >= c.limit {
		return step << denialBits, true // a period that has ended
	}
	return end<<denialBits | count, false
}

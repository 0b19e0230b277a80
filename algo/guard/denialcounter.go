package guard

import (
	"math"

	"github.com/sluice-go/sluice/algo"
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
	maxDenials = decide.MaxDenials
)

func newDenialCounter(r algo.Rate) denialCounter {
	return denialCounter{r.Count, keystore.ToTicks(r.Period) >> denialBits}
}

// add counts one denial and reports whether it completes the limit; then the count restarts.
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

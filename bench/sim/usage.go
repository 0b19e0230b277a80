package sim

import (
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
)

// usage is the signal of a strategy. It measures as [signal.CPU] does: the use of all processors, or
// that of the quota if it is more, since a reading at least 250 ms ago, with a threshold of 0.8.
func (w *world) usage() adaptive.Option {
	var at, used int64
	share := 0.0
	return strategy.WithSignal(signal.Func(func() (level float64, ok bool) {
		if over := w.now - at; over >= int64(250*ms) {
			cpu := w.server.cpu()
			cores := float64(cpu-used) / float64(over)
			share = min(cores/float64(w.Cores)+w.Neighbour, 1)
			if w.Greedy {
				share = 1
			}
			if quota, ok := w.Quota(); ok {
				share = max(share, cores/quota)
			}
			at, used = w.now, cpu
		}
		return share / .8, at > 0
	}))
}

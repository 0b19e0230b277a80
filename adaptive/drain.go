package adaptive

import "time"

// unknownDrain stands for the drain time as long as no work has completed.
const unknownDrain = time.Second

// drain is the time in which units of inFlight are expected to end when each
// takes mean: by Little's law they end at the rate inFlight/mean.
func drain(mean, inFlight, units int64) time.Duration {
	if mean == 0 {
		return unknownDrain
	}
	share := float64(max(units, 1)) / float64(max(inFlight, 1))
	return time.Duration(min(float64(mean)*share, float64(time.Hour))) + 1
}

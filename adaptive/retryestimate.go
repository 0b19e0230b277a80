package adaptive

import "time"

// unknownRetry is the retry estimate until work has completed.
const unknownRetry = time.Second

// retryEstimate is the expected time until units of inFlight have ended, when each
// takes mean nanoseconds: by Little's law they end at the rate inFlight/mean.
func retryEstimate(mean, inFlight, units int64) time.Duration {
	if mean == 0 {
		return unknownRetry
	}
	share := float64(max(units, 1)) / float64(max(inFlight, 1))
	return time.Duration(min(float64(mean)*share, float64(time.Hour))) + 1
}

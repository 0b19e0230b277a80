package adaptive

// WithMachine runs a limiter or a strategy on a machine of the test.
var WithMachine = withMachine

// NextShare is the share of the arrivals that may try.
var NextShare = nextShare

// Remembered is the number of keys in memory.
func Remembered(k *KeyedLimiter) (n int) {
	for i := range k.shards {
		k.shards[i].mu.Lock()
		n += len(k.shards[i].counts)
		k.shards[i].mu.Unlock()
	}
	return n
}

// Check is the error of a strategy that New would report.
func Check(s Strategy) error { return check(s) }

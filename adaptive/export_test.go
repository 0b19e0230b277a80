package adaptive

// NewKratos is CompatKratos with a signal of the test's own, where 1 is 80 %.
func NewKratos(s Signal) Strategy { return newKratos(s) }

// NextShare is how priorities move.
var NextShare = nextShare

// Remembered is how many keys k holds anything for.
func Remembered(k *KeyedLimiter) (n int) {
	for i := range k.shards {
		k.shards[i].mu.Lock()
		n += len(k.shards[i].counts)
		k.shards[i].mu.Unlock()
	}
	return n
}

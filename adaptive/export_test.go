package adaptive

// NewKratos is CompatKratos with a signal of the test's own, where 1 is 80 %.
func NewKratos(s Signal) Strategy { return newKratos(s) }

// NextShare is how priorities move.
var NextShare = nextShare

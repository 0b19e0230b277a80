package adaptive

// Signal tells how loaded the machine is.
type Signal interface {
	Read() (level float64, ok bool)
}

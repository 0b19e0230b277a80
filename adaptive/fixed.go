package adaptive

import (
	"fmt"

	"github.com/sluice-go/sluice/internal/wiring"
)

// Fixed returns a strategy with a constant limit: at most n units in flight, 1 to 2147483647.
//
// It is the right choice where the capacity is known, such as the connections of a pool. A guess
// that is too low wastes capacity, one that is too high protects nothing.
func Fixed(n int) Strategy {
	if n < 1 || n > noLimit {
		return invalid{fmt.Errorf("Fixed: limit is %d, want 1 to %d", n, noLimit)}
	}
	return &fixed{n: n}
}

type fixed struct {
	wiring.Owned
	n int
}

func (f *fixed) Limit() int     { return f.n }
func (f *fixed) Observe(Sample) {}
func (f *fixed) MaxLimit() int  { return f.n }
func (f *fixed) State() State   { return State{Name: "fixed", Limit: f.n} }

package adaptive

import "github.com/sluice-go/sluice/internal/machine"

// now is monotonic time in nanoseconds, above 0. Limiters, strategies and
// windows share it, so that an instant means the same to all of them. A reading
// is most of what an admission costs, so it is passed along rather than
// repeated.
func now() int64 { return machine.Now() }

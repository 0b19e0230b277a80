package adaptive

import "github.com/sluice-go/sluice/internal/machine"

// now is monotonic time in nanoseconds, above 0, of the real machine. A reading is
// most of the cost of an admission, so callers read once and pass the instant on.
func now() int64 { return machine.Real{}.Now() }

// The simulator reaches withMachine through package machine.
func init() { machine.Option = func(m machine.Machine) any { return withMachine(m) } }

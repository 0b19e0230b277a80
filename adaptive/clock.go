package adaptive

import "time"

// epoch is where the package's monotonic time begins. Limiters, strategies and
// windows share it, so that an instant means the same to all of them. It lies
// a century back, so that instants are positive also inside a bubble of
// testing/synctest, where it is always the year 2000.
var epoch = time.Now().Add(-100 * 365 * 24 * time.Hour)

// now is monotonic time in nanoseconds since epoch. A reading is most of what
// an admission costs, so it is passed along rather than repeated.
func now() int64 { return int64(time.Since(epoch)) }

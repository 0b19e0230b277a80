package machine

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/sluice-go/sluice/internal/cgroup"
)

// Real is the machine of this process.
type Real struct{}

var _ Machine = Real{}

// epoch is where monotonic time begins. It lies a century back, so that instants
// are positive inside a bubble of testing/synctest too, which begins in the year
// 2000.
var epoch = time.Now().Add(-100 * 365 * 24 * time.Hour)

// Now implements [Machine].
func (Real) Now() int64 { return int64(time.Since(epoch)) }

// Procs is GOMAXPROCS.
func (Real) Procs() int { return runtime.GOMAXPROCS(0) }

// Quota is the smallest CPU quota of the control groups around the process.
func (Real) Quota() (float64, bool) {
	_, cpus, ok := cgroup.Tightest()
	return cpus, ok
}

// Rand implements [Machine].
func (Real) Rand() uint64 { return rand.Uint64() }

// Goroutines comes from the runtime.
func (Real) Goroutines() (int, bool) { return runtime.NumGoroutine(), true }

// CPU is the user and system time of the process: getrusage on Unix,
// GetProcessTimes on Windows, unknown elsewhere.
func (Real) CPU() (time.Duration, bool) { return cpuTime() }

package machine

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/cgroup"
)

// epoch is where monotonic time begins. It lies a century back, so that
// instants are positive also inside a bubble of testing/synctest, where it is
// always the year 2000.
var epoch = time.Now().Add(-100 * 365 * 24 * time.Hour)

// Now is monotonic time in nanoseconds since an origin of its own.
func Now() int64 {
	if simulated != nil {
		return simulated.Now()
	}
	return int64(time.Since(epoch))
}

// Procs is GOMAXPROCS.
func Procs() int {
	if simulated != nil {
		return simulated.Procs()
	}
	return runtime.GOMAXPROCS(0)
}

// Capacity is how many processors' worth of time the process can use: GOMAXPROCS
// or, where that is less, its quota. To read the quota takes some files.
func Capacity() float64 {
	quota, limited := 0.0, false
	if simulated != nil {
		quota, limited = simulated.Quota()
	} else {
		_, quota, limited = cgroup.Tightest()
	}
	if procs := float64(Procs()); !limited || quota > procs {
		return procs
	}
	return quota
}

const runnableMetric = "/sched/goroutines/runnable:goroutines"

// samples are reused: a reading allocates nothing and takes no lock of ours.
var samples = sync.Pool{New: func() any {
	return &[]metrics.Sample{{Name: runnableMetric}}
}}

// Runnable is how many goroutines are ready to run and do not, over all
// processors; false if the runtime does not tell.
func Runnable() (n int, ok bool) {
	if simulated != nil {
		return simulated.Runnable()
	}
	s := samples.Get().(*[]metrics.Sample)
	metrics.Read(*s)
	v := (*s)[0].Value
	samples.Put(s)
	if v.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return int(v.Uint64()), true
}

// CPU is the processor time, user and system, that the process has used; false
// where that cannot be known.
func CPU() (time.Duration, bool) {
	if simulated != nil {
		return simulated.CPU()
	}
	return cpuTime()
}

package machine

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/warning"
)

const runnableMetric = "/sched/goroutines/runnable:goroutines"

// Runnable comes from runtime/metrics, over all processors, if that can be
// trusted here; see selfCheck. Otherwise it is the number of goroutines above the
// fewest of the last one to two minutes, the idle ones, and a warning is logged once.
func (Real) Runnable() (n int, ok bool) {
	if trusted() {
		return readRunnable()
	}
	return second.above(runtime.NumGoroutine(), Real{}.Now()), true
}

// samples are reused: a reading allocates nothing and takes no lock of this
// package.
var samples = sync.Pool{New: func() any {
	return &[]metrics.Sample{{Name: runnableMetric}}
}}

func readRunnable() (n int, ok bool) {
	s := samples.Get().(*[]metrics.Sample)
	metrics.Read(*s)
	v := (*s)[0].Value
	samples.Put(s)
	if v.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return int(min(v.Uint64(), math.MaxInt32)), true
}

var trusted = sync.OnceValue(func() bool {
	reason := selfCheck(readRunnable)
	if reason != "" {
		warnSignal.Log("reason", reason)
	}
	return reason == ""
})

var warnSignal = &warning.Once{Line: warning.Line{
	Code:    "adaptive.no_runnable_goroutines",
	Message: "adaptive: runtime/metrics does not know the number of runnable goroutines; another, less exact measure takes its place",
	Do:      "report the platform",
}}

// selfCheck reports why read cannot be trusted, "" if it can: the metric is
// missing, says more than there are goroutines, or does not notice goroutines
// that have just become runnable. It begins some that end at once.
func selfCheck(read func() (int, bool)) (reason string) {
	const rounds, goroutines, slack = 200, 64, 1000
	for range rounds {
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {})
		}
		n, ok := read()
		all.Wait()
		switch {
		case !ok:
			return "missing"
		case n > runtime.NumGoroutine()+goroutines+slack: // others may begin meanwhile
			return "implausible"
		case n > 0:
			return ""
		}
	}
	return "constant"
}

// second is the second signal of this process.
var second minimum

// minimum remembers the smallest value of the last one to two minutes.
type minimum struct {
	current, last atomic.Int64 // of this minute and the one before, plus 1; 0: none
	ends          atomic.Int64 // of this minute
}

// above is by how much n exceeds the smallest value.
func (m *minimum) above(n int, at int64) int {
	v := int64(n) + 1
	if end := m.ends.Load(); at >= end && m.ends.CompareAndSwap(end, at+int64(time.Minute)) {
		m.last.Store(m.current.Swap(v))
	}
	current, last := m.current.Load(), m.last.Load()
	if current == 0 || v < current { // concurrent readings may lose one another
		m.current.Store(v)
		current = v
	}
	if last > 0 {
		current = min(current, last)
	}
	return int(max(v-current, 0))
}

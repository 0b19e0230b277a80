package signal

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/sluice-go/sluice/internal/cgroup"
)

// Load1 measures the load average over one minute per processor that this process may use. The
// [Threshold] is the load of one processor, 1 by default.
//
// It takes a minute to show a change in full. On Linux it also counts tasks that wait for a disk.
func Load1(opts ...Option) Signal {
	return &sampled{threshold: newThreshold("load1", 1, opts), measure: func(int64) (float64, bool) {
		avg, err := load.AvgWithContext(context.Background())
		if err != nil {
			return 0, false
		}
		return avg.Load1 / processors(), true
	}}
}

// processors returns how many processors this process may use, by its affinity and its quota.
func processors() float64 {
	n := float64(runtime.NumCPU())
	if _, cpus, ok := cgroup.Tightest(); ok {
		return min(n, cpus)
	}
	return n
}

// Throttled measures the share of the scheduling periods in which the control group with the
// smallest quota had exhausted it and was stopped (cpu.stat of Linux). The [Threshold] is a share,
// 0.1 by default. Without a quota it is unknown.
func Throttled(opts ...Option) Signal {
	m := new(throttleMeter)
	return &sampled{threshold: newThreshold("throttled", 0.1, opts), measure: m.measure}
}

type throttleMeter struct{ periods, throttled delta }

func (m *throttleMeter) measure(at int64) (share float64, ok bool) {
	g, _, _ := cgroup.Tightest()
	periods, ok1 := g.Stat("cpu.stat", "nr_periods")
	throttled, ok2 := g.Stat("cpu.stat", "nr_throttled")
	if !ok1 || !ok2 {
		*m = throttleMeter{}
		return 0, false
	}
	periods, _, ok1 = m.periods.next(at, periods)
	throttled, _, ok2 = m.throttled.next(at, throttled)
	if periods == 0 {
		return 0, ok1 && ok2
	}
	return throttled / periods, ok1 && ok2
}

// Memory measures the used share of the tightest memory limit: those of the control groups around this process,
// without the file cache (active_file and inactive_file of memory.stat), which the kernel can drop, and the soft
// limit of the Go runtime (GOMEMLIMIT). Without any limit it measures the machine's memory. The [Threshold] is a
// share, 0.9 by default.
func Memory(opts ...Option) Signal {
	return &sampled{threshold: newThreshold("memory", 0.9, opts), measure: func(int64) (float64, bool) {
		share, ok := groupMemory()
		if own, limited := ownMemory(); limited {
			return max(share, own), true
		}
		if ok {
			return share, true
		}
		v, err := mem.VirtualMemoryWithContext(context.Background())
		if err != nil || v.Total == 0 {
			return 0, false
		}
		return v.UsedPercent / 100, true
	}}
}

// groupMemory returns the largest used share of a memory limit among the groups around this
// process.
func groupMemory() (share float64, ok bool) {
	for _, g := range cgroup.Of("memory") {
		if used, most, limited := g.Memory(); limited {
			share, ok = max(share, used/most), true
		}
	}
	return share, ok
}

// ownMemory returns the used share of the Go runtime's soft limit.
func ownMemory() (share float64, ok bool) {
	limit := debug.SetMemoryLimit(-1)
	if limit <= 0 || limit == math.MaxInt64 {
		return 0, false
	}
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 || s[1].Value.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return float64(s[0].Value.Uint64()-s[1].Value.Uint64()) / float64(limit), true
}

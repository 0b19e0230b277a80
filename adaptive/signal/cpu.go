package signal

import (
	"context"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"

	"github.com/sluice-go/sluice/internal/cgroup"
)

// CPU measures the used share of the processor time, of the machine or of the control group that
// limits this process, whichever is higher. The [Threshold] is a share, 0.8 by default.
//
// The machine's times come from gopsutil (HOST_PROC moves /proc), at most every 250 ms. Control
// groups of version 1, version 2 and both are read. The smallest quota of all groups around the
// process counts, and is read again every 10 s.
//
// The processor shows nothing about a service that waits for others; use a strategy that follows
// the response time there.
func CPU(opts ...Option) Signal {
	m := new(cpuMeter)
	return &sampled{threshold: newThreshold("cpu", 0.8, opts), measure: m.measure}
}

const quotaEvery = 10 * time.Second

// cpuMeter measures the use by the machine and of the control group of the process.
type cpuMeter struct {
	busy, all delta
	used      delta
	group     cgroup.Group
	cpus      float64 // 0: no quota
	readAt    int64   // last reading of the quota, 0: never
}

func (m *cpuMeter) measure(at int64) (share float64, ok bool) {
	host, okHost := m.host(at)
	own, okOwn := m.own(at)
	switch {
	case okHost && okOwn:
		return max(host, own), true
	case okOwn:
		return own, true
	}
	return host, okHost
}

// host returns the share of the machine's time that was not idle. User time includes guests. Stolen
// time counts as used, because it is not available.
func (m *cpuMeter) host(at int64) (share float64, ok bool) {
	times, err := cpu.TimesWithContext(context.Background(), false)
	if err != nil || len(times) == 0 {
		m.busy, m.all = delta{}, delta{}
		return 0, false
	}
	t := times[0]
	busy := t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	all, _, okAll := m.all.next(at, busy+t.Idle+t.Iowait)
	busy, _, okBusy := m.busy.next(at, busy)
	if !okAll || !okBusy || all <= 0 {
		return 0, false
	}
	return min(busy/all, 1), true
}

// own returns the used share of the group's quota.
func (m *cpuMeter) own(at int64) (share float64, ok bool) {
	if m.readAt == 0 || at-m.readAt >= int64(quotaEvery) {
		m.lookup(at)
	}
	if m.cpus == 0 {
		return 0, false
	}
	seconds, ok := m.group.Used()
	if !ok {
		m.used = delta{}
		return 0, false
	}
	used, over, ok := m.used.next(at, seconds)
	return used / (over.Seconds() * m.cpus), ok
}

func (m *cpuMeter) lookup(at int64) {
	m.readAt = at
	g, cpus, ok := cgroup.Tightest()
	if g != m.group {
		m.used = delta{}
	}
	m.group, m.cpus = g, 0
	if ok {
		m.cpus = min(cpus, float64(runtime.NumCPU()))
	}
}

package signal

import (
	"math"
	"runtime/metrics"

	"github.com/sluice-go/sluice/internal/machine"
)

// Runnable measures the goroutines that are ready to run and not running, per processor that Go
// uses (GOMAXPROCS): the queue in front of the processor. It grows first when the processor is the
// bottleneck. The [Threshold] is in goroutines per processor, 4 by default. Each reading is live
// and takes about 0.1 us.
func Runnable(opts ...Option) Signal {
	return &runnable{newThreshold("runnable", 4, opts)}
}

type runnable struct{ threshold }

func (r *runnable) Read() (level float64, ok bool) {
	n, ok := machine.Real{}.Runnable()
	return float64(n) / float64(machine.Real{}.Procs()) / r.value, ok
}

// SchedLatency measures the 99th percentile of the time that goroutines wait between ready and
// running, over the last 250 ms or more. The [Threshold] is in seconds, 0.01 by default: the
// scheduler's time slice.
func SchedLatency(opts ...Option) Signal {
	m := &latencyMeter{sample: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
	return &sampled{threshold: newThreshold("sched latency", 0.01, opts), measure: m.measure}
}

type latencyMeter struct {
	sample []metrics.Sample
	before []uint64
	at     int64
}

func (m *latencyMeter) measure(at int64) (seconds float64, ok bool) {
	metrics.Read(m.sample)
	if m.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0, false
	}
	h := m.sample[0].Value.Float64Histogram()
	if len(m.before) == len(h.Counts) && at-m.at <= int64(sampleLifetime) {
		seconds, ok = quantile(.99, m.before, h.Counts, h.Buckets), true
	}
	m.before, m.at = append(m.before[:0], h.Counts...), at
	return seconds, ok
}

// quantile returns the q-quantile of a histogram's growth, as the lower edge of its bucket; 0
// without growth.
func quantile(q float64, before, after []uint64, edges []float64) float64 {
	var total, sum uint64
	for i := range after {
		total += after[i] - before[i]
	}
	for i := range after {
		sum += after[i] - before[i]
		if total > 0 && float64(sum) >= q*float64(total) {
			if math.IsInf(edges[i], -1) {
				return 0
			}
			return edges[i]
		}
	}
	return 0
}

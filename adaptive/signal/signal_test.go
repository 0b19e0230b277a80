package signal_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/internal/machine"
)

// dial is a signal that a test sets.
type dial struct{ bits atomic.Uint64 }

func (d *dial) set(level float64) { d.bits.Store(math.Float64bits(level)) }
func (d *dial) Read() (float64, bool) {
	level := math.Float64frombits(d.bits.Load())
	return level, level >= 0
}

func (d *dial) String() string { return "dial" }

// host is a fixture of /proc and /sys/fs/cgroup.
type host struct {
	t    *testing.T
	root string
}

func newHost(t *testing.T) host {
	m := host{t, t.TempDir()}
	t.Setenv("HOST_PROC", filepath.Join(m.root, "proc"))
	t.Setenv("HOST_ROOT", m.root)
	m.write("proc/self/cgroup", "")
	m.write("proc/self/mountinfo", "")
	return m
}

func (m host) write(name, text string) {
	path := filepath.Join(m.root, name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(m.t, os.WriteFile(path, []byte(text), 0o644))
}

func (m host) remove(name string) { require.NoError(m.t, os.RemoveAll(filepath.Join(m.root, name))) }

// stat sets the machine's times, in seconds: busy is spread over kinds.
func (m host) stat(busy, idle float64) {
	b, i := int(busy*100), int(idle*100)
	// user nice system idle iowait irq softirq steal guest guest_nice; a guest's
	// time is part of user time.
	m.write("proc/stat", fmt.Sprintf("cpu %d %d %d %d %d 0 0 %d %d 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n",
		b/2, b/4, b/8, i/2, i-i/2, b-b/2-b/4-b/8, b/2))
}

// level reads twice, with change and the interval between the samples in
// between, and expects a level.
func level(t *testing.T, s signal.Signal, change func()) float64 {
	t.Helper()
	s.Read()
	change()
	time.Sleep(time.Second)
	got, ok := s.Read()
	require.True(t, ok)
	return got
}

func TestCPUOfTheMachine(t *testing.T) {
	m := newHost(t)
	synctest.Test(t, func(t *testing.T) {
		m.stat(100, 900)
		cpu := signal.CPU()
		_, ok := cpu.Read()
		require.False(t, ok, "one sample is no difference")
		require.InDelta(t, .6/.8, level(t, cpu, func() { m.stat(160, 940) }), .01)
		require.InDelta(t, 1/.8, level(t, cpu, func() { m.stat(200, 940) }), .01)
		require.InDelta(t, 0, level(t, cpu, func() { m.stat(200, 1000) }), .01)
		require.InDelta(t, 1, level(t, signal.CPU(signal.Threshold(.5)), func() { m.stat(250, 1050) }), .01)
	})
}

// TestFailedSample: the level holds for two seconds, then it is unknown, and
// comes back with the next two samples.
func TestFailedSample(t *testing.T) {
	m := newHost(t)
	synctest.Test(t, func(t *testing.T) {
		m.stat(100, 900)
		cpu := signal.CPU()
		require.InDelta(t, .625, level(t, cpu, func() { m.stat(150, 950) }), .01)
		m.remove("proc/stat")
		for range 8 {
			time.Sleep(249 * time.Millisecond)
			got, ok := cpu.Read()
			require.True(t, ok)
			require.InDelta(t, .625, got, .01)
		}
		time.Sleep(10 * time.Millisecond)
		_, ok := cpu.Read()
		require.False(t, ok)
		m.write("proc/stat", "cpu nonsense\n")
		time.Sleep(time.Second)
		_, ok = cpu.Read()
		require.False(t, ok)
		m.stat(500, 500)
		time.Sleep(time.Second)
		_, ok = cpu.Read()
		require.False(t, ok)
		require.InDelta(t, 1.25, level(t, cpu, func() { m.stat(600, 500) }), .01)
	})
}

// TestLongPause: the mean over a night does not count in the morning.
func TestLongPause(t *testing.T) {
	m := newHost(t)
	synctest.Test(t, func(t *testing.T) {
		m.stat(100, 900)
		cpu := signal.CPU()
		level(t, cpu, func() { m.stat(150, 950) })
		time.Sleep(12 * time.Hour)
		m.stat(200, 90_000)
		_, ok := cpu.Read()
		require.False(t, ok)
		require.InDelta(t, 1.25, level(t, cpu, func() { m.stat(300, 90_000) }), .01)
	})
}

const v2Mount = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

// TestCPUQuota: the used share of the group's quota counts, whatever the use of the
// machine, and of nested groups the smallest quota.
func TestCPUQuota(t *testing.T) {
	second := func(n float64, unit float64) string { return fmt.Sprintf("%d\n", int64(n*unit)) }
	usage := func(n float64) string { return "usage_usec " + second(n, 1e6) + "user_usec 5\n" }
	for name, row := range map[string]struct {
		set func(m host)
		use func(m host, seconds float64)
	}{
		"v2": {
			func(m host) {
				m.write("proc/self/cgroup", "0::/pod/app\n")
				m.write("proc/self/mountinfo", v2Mount)
				m.write("sys/fs/cgroup/pod/app/cpu.max", "50000 100000\n")
			},
			func(m host, s float64) { m.write("sys/fs/cgroup/pod/app/cpu.stat", usage(s)) },
		},
		"v2, the outer group is tighter": {
			func(m host) {
				m.write("proc/self/cgroup", "0::/pod/app\n")
				m.write("proc/self/mountinfo", v2Mount)
				m.write("sys/fs/cgroup/pod/app/cpu.max", "max 100000\n")
				m.write("sys/fs/cgroup/pod/cpu.max", "50000 100000\n")
				m.write("sys/fs/cgroup/cpu.max", "4000000 100000\n")
				m.write("sys/fs/cgroup/pod/app/cpu.stat", usage(77))
			},
			func(m host, s float64) { m.write("sys/fs/cgroup/pod/cpu.stat", usage(s)) },
		},
		"v2, the container sees its own group only": {
			func(m host) {
				m.write("proc/self/cgroup", "0::/../elsewhere\n")
				m.write("proc/self/mountinfo", "31 23 0:28 /pod/app /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
				m.write("sys/fs/cgroup/cpu.max", "50000 100000\n")
			},
			func(m host, s float64) { m.write("sys/fs/cgroup/cpu.stat", usage(s)) },
		},
		"v1, one hierarchy": {
			func(m host) {
				m.write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n")
				m.write("proc/self/mountinfo", "40 31 0:35 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n")
				m.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n")
				m.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
			},
			func(m host, s float64) { m.write("sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", second(s, 1e9)) },
		},
		"v1, two hierarchies, nested": {
			func(m host) {
				m.write("proc/self/cgroup", "2:cpuacct:/a/b\n1:cpu:/a/b\n")
				m.write("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"+
					"33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n")
				m.write("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n")
				m.write("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n")
				m.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n")
				m.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
			},
			func(m host, s float64) { m.write("sys/fs/cgroup/cpuacct/a/cpuacct.usage", second(s, 1e9)) },
		},
		"hybrid": {
			func(m host) {
				m.write("proc/self/cgroup", "1:cpu,cpuacct:/a\n0::/a\n")
				m.write("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"+
					"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
				m.write("sys/fs/cgroup/unified/a/cgroup.procs", "1\n")
				m.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n")
				m.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
			},
			func(m host, s float64) { m.write("sys/fs/cgroup/cpu/a/cpuacct.usage", second(s, 1e9)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newHost(t)
			row.set(m)
			row.use(m, 100)
			m.stat(100, 900)
			synctest.Test(t, func(t *testing.T) {
				cpu := signal.CPU()
				got := level(t, cpu, func() {
					row.use(m, 100.4) // 0.4 of 0.5 s
					m.stat(110, 990)  // 0.1
				})
				require.InDelta(t, 1, got, .01, "0.8 of a threshold of 0.8")
			})
		})
	}
}

// TestCPUQuotaIsReadAgain after ten seconds.
func TestCPUQuotaIsReadAgain(t *testing.T) {
	m := newHost(t)
	m.write("proc/self/cgroup", "0::/\n")
	m.write("proc/self/mountinfo", v2Mount)
	m.write("sys/fs/cgroup/cpu.max", "50000 100000\n")
	synctest.Test(t, func(t *testing.T) {
		used := 0.0
		m.stat(1, 1)
		cpu := signal.CPU(signal.Threshold(1))
		use := func() { // 0.2 s of processor time in a second
			used += .2
			m.write("sys/fs/cgroup/cpu.stat", fmt.Sprintf("usage_usec %d\n", int64(used*1e6)))
			m.stat(1, 1+used)
		}
		use()
		require.InDelta(t, .4, level(t, cpu, use), .01)
		m.write("sys/fs/cgroup/cpu.max", "25000 100000\n")
		require.InDelta(t, .4, level(t, cpu, use), .01)
		for range 10 {
			level(t, cpu, use)
		}
		require.InDelta(t, .8, level(t, cpu, use), .01)
	})
}

func TestLoad1(t *testing.T) {
	m, load := newHost(t), fmt.Sprintf("%d.00 1.00 1.00 1/100 12345\n", 3*runtime.NumCPU())
	m.write("proc/loadavg", load)
	got, ok := signal.Load1(signal.Threshold(2)).Read()
	require.True(t, ok)
	require.InDelta(t, 1.5, got, 1e-9)
	m = newHost(t) // the groups of a process are kept for a while
	m.write("proc/loadavg", load)
	m.write("proc/self/cgroup", "0::/\n")
	m.write("proc/self/mountinfo", v2Mount)
	m.write("sys/fs/cgroup/cpu.max", "50000 100000\n")
	got, ok = signal.Load1(signal.Threshold(2)).Read()
	require.True(t, ok)
	require.InDelta(t, 3*float64(runtime.NumCPU()), got, 1e-9, "the quota is half a processor")
	require.Equal(t, .5, machine.Capacity(machine.Real{}))
}

func TestThrottled(t *testing.T) {
	newHost(t)
	synctest.Test(t, func(t *testing.T) {
		s := signal.Throttled()
		s.Read()
		time.Sleep(time.Second)
		_, ok := s.Read()
		require.False(t, ok, "without a quota")
	})
	m := newHost(t)
	m.write("proc/self/cgroup", "0::/\n")
	m.write("proc/self/mountinfo", v2Mount)
	m.write("sys/fs/cgroup/cpu.max", "50000 100000\n")
	stat := func(periods, throttled int) func() {
		return func() {
			m.write("sys/fs/cgroup/cpu.stat", fmt.Sprintf("usage_usec 1\nnr_periods %d\nnr_throttled %d\n", periods, throttled))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		stat(100, 50)()
		s := signal.Throttled()
		require.InDelta(t, .2/.1, level(t, s, stat(110, 52)), 1e-9)
		require.Zero(t, level(t, s, stat(120, 52)))
		require.Zero(t, level(t, s, stat(120, 52)), "an idle group has no periods")
	})
}

func TestMemory(t *testing.T) {
	for name, row := range map[string]struct{ cgroup, mounts, dir, limit, used, prefix string }{
		"v2": {"0::/a\n", v2Mount, "sys/fs/cgroup/a/", "memory.max", "memory.current", ""},
		"v1": {"3:memory:/a\n", "9 8 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/a/", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newHost(t)
			m.write("proc/self/cgroup", row.cgroup)
			m.write("proc/self/mountinfo", row.mounts)
			m.write(row.dir+row.limit, "1000\n")
			m.write(row.dir+row.used, "850\n")
			m.write(row.dir+"memory.stat", fmt.Sprintf("anon 1\n%[1]sinactive_file 400\n%[1]sactive_file 0\n", row.prefix))
			got, ok := signal.Memory(signal.Threshold(.9)).Read()
			require.True(t, ok)
			require.InDelta(t, .45/.9, got, 1e-9)
			m.write(row.dir+row.used, "930\n") // a service that reads the same files often: 180 are in use
			m.write(row.dir+"memory.stat", fmt.Sprintf("anon 180\n%[1]sinactive_file 0\n%[1]sactive_file 750\n", row.prefix))
			got, ok = signal.Memory(signal.Threshold(.9)).Read()
			require.True(t, ok)
			require.InDelta(t, .18/.9, got, 1e-9)
		})
	}
	m := newHost(t)
	_, ok := signal.Memory().Read()
	require.False(t, ok, "there is nothing to read")
	m.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 250 kB\nBuffers: 0 kB\nCached: 150 kB\n")
	got, ok := signal.Memory().Read()
	require.True(t, ok)
	require.InDelta(t, .75/.9, got, .01)
}

// TestRunnable counts goroutines that are ready and not running.
func TestRunnable(t *testing.T) {
	s := signal.Runnable(signal.Threshold(1))
	stop := make(chan struct{})
	n := 50 * runtime.GOMAXPROCS(0)
	done := make(chan struct{}, n)
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		}()
	}
	highest := 0.0
	for range 10_000 {
		got, ok := s.Read()
		require.True(t, ok)
		if highest = max(highest, got); highest > 10 {
			break
		}
		runtime.Gosched()
	}
	close(stop)
	for range n {
		<-done
	}
	require.Greater(t, highest, 10.0)
}

func TestSchedLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signal.SchedLatency()
		_, ok := s.Read()
		require.False(t, ok)
		time.Sleep(time.Second)
		got, ok := s.Read()
		require.True(t, ok)
		require.GreaterOrEqual(t, got, 0.0)
	})
}

func TestMaxOf(t *testing.T) {
	a, b := new(dial), new(dial)
	s := signal.MaxOf(a, b)
	a.set(.5)
	b.set(.7)
	got, ok := s.Read()
	require.True(t, ok)
	require.Equal(t, .7, got)
	b.set(math.NaN())
	got, ok = s.Read()
	require.True(t, ok, "known signals count")
	require.Equal(t, .5, got)
	a.set(-1)
	_, ok = s.Read()
	require.False(t, ok)
	require.Equal(t, "max of dial, dial", fmt.Sprint(s))
	require.PanicsWithValue(t, "signal: MaxOf needs a signal", func() { signal.MaxOf() })
	require.PanicsWithValue(t, "signal: MaxOf: signal 1 is nil", func() { signal.MaxOf(a, nil) })
	got, ok = signal.Func(func() (float64, bool) { return 3, true }).Read()
	require.True(t, ok)
	require.Equal(t, 3.0, got)
}

package distributed_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// 64 streams at a time on one key, 16 in each of four processes, whose costs are lognormal,
// a fifth of the most on average. A stream produces 20 units each 400 ms, which together is
// twice the limit. A short run has everything at a multiple of that speed.
const (
	processCount  = 4
	processRate   = 100_000 // a minute
	processBurst  = 20_000
	processMost   = 4000 // of a stream
	processChunk  = 20
	processBlock  = 100
	processStream = 16 // of a process
	chunkTime     = 400 * time.Millisecond
)

// processStrategy is how the streams of a limit spend it.
type processStrategy struct {
	name          string
	start, block  int64 // units
	before, after bool  // each chunk is reserved before it is produced, or after
	waits         bool  // for a chunk that is denied; otherwise the stream stops
	excess        int64 // that is allowed
	used          float64
}

var processStrategies = []processStrategy{
	{"reserve the maximum", processMost, 0, false, false, false, 0, 0},
	{"before each chunk, or wait", processBlock, processBlock, true, false, true, 0, .95},
	{"before each chunk, or stop", processBlock, processBlock, true, false, false, 0, .95},
	{"after each chunk, or stop", processBlock, processBlock, false, true, false, processCount * processStream * processChunk, .95},
}

// TestW1_StreamsOverProcesses: the streams of four processes on one Redis use at most
// B + R*w, and a chunk each more where a chunk is known only afterwards; and nearly all of
// the limit.
func TestW1_StreamsOverProcesses(t *testing.T) {
	cases.Slow(t)
	if task := os.Getenv(taskOfProcess); task != "" {
		streamsOfAProcess(t, task)
		return
	}
	speed, long := int64(10), 4*time.Second
	if cases.Long() {
		speed, long = 1, 10*time.Minute
	}
	start, spent := streamsOverProcesses(t, redistest.Start(t).Addr(), speed, long, patient, func() {})
	var table strings.Builder
	for i, s := range processStrategies {
		sofar, window := spent[i].excess(start, speed)
		used := float64(spent[i].sum()) / (processBurst + processRate*float64(speed)*long.Minutes())
		fmt.Fprintf(&table, "%-28s %10.3f %8d %12d %8d %8d\n", s.name, used, max(sofar, 0), max(window, 0), spent[i].whole, spent[i].cut)
		require.LessOrEqual(t, sofar, s.excess, s.name)
		// A unit may be used later than it was reserved.
		held := processCount * processStream * max(s.start, s.block)
		require.LessOrEqual(t, window, s.excess+held, s.name)
		require.Positive(t, spent[i].denied, s.name)
		require.Zero(t, spent[i].local, s.name)
		least := s.used
		if !cases.Long() { // a busy machine has less demand at a higher speed
			least = min(least, .6)
		}
		require.GreaterOrEqual(t, used, least, s.name)
	}
	t.Logf("W1: %v of %d streams in %d processes on one Redis, at %d times the speed\n%-28s %10s %8s %12s %8s %8s\n%s",
		long, processCount*processStream, processCount, speed, "", "limit used", "excess", "any window", "served", "cut off", table.String())
}

// TestW3_StreamsOverProcessesThroughAnOutage: while Redis is away for a quarter of the time,
// four processes together exceed the limit by at most its units over the outage, B + R*away.
func TestW3_StreamsOverProcessesThroughAnOutage(t *testing.T) {
	cases.Slow(t)
	speed, long := int64(10), 4*time.Second
	if cases.Long() {
		long = time.Minute
	}
	away := long / 4
	proxy := redistest.StartProxy(t, redistest.Start(t))
	start, spent := streamsOverProcesses(t, proxy.Addr(), speed, long, 100*time.Millisecond, func() {
		time.Sleep(long / 2)
		proxy.Set(redistest.Fault{Refuse: true})
		time.Sleep(away)
		proxy.Set(redistest.Fault{})
	})
	for i, s := range processStrategies {
		sofar, _ := spent[i].excess(start, speed)
		local := processBurst + int64(processRate*float64(speed)*away.Minutes())
		t.Logf("W3: %-28s %d units beyond B + R*w, of %d that an outage of %v allows; %d of %d decisions were local",
			s.name, max(sofar, 0), local, away, spent[i].local, spent[i].all)
		require.LessOrEqual(t, sofar, s.excess+local, s.name)
		if s.block > 0 { // the others ask less than once in the outage
			require.Positive(t, spent[i].local, s.name)
		}
	}
}

// streamsOverProcesses runs all strategies in each process, and meanwhile.
func streamsOverProcesses(t *testing.T, addr string, speed int64, long, timeout time.Duration, meanwhile func()) (time.Time, []spending) {
	var processes []*process
	for i := range processCount {
		processes = append(processes, startProcess(t, "TestW1_StreamsOverProcesses", addr, i, speed, int64(long), int64(timeout)))
	}
	for _, p := range processes {
		p.ready(t)
	}
	start := time.Now()
	for _, p := range processes {
		fmt.Fprintln(p.stdin, start.UnixNano())
	}
	meanwhile()
	spent := make([]spending, len(processStrategies))
	for _, p := range processes {
		p.end(t, func(line string) bool { return collect(line, spent) })
	}
	return start, spent
}

// spending is the use of the streams of one limit.
type spending struct {
	uses               []use
	whole, cut, denied int64
	local, all         int64 // decisions
}

// use is units that were used at an instant, in ns since 1970.
type use struct{ at, units int64 }

func (s *spending) sum() (n int64) {
	for _, u := range s.uses {
		n += u.units
	}
	return n
}

// excess is the most units beyond B + R*w since the start at any instant, which no load of the
// machine changes, and in any window.
func (s *spending) excess(start time.Time, speed int64) (sofar, window int64) {
	slices.SortFunc(s.uses, func(a, b use) int { return int(a.at - b.at) })
	const none = math.MinInt64
	sofar, window = none, none
	level, at, total := 0.0, start.UnixNano(), int64(0)
	in := func(ns int64) float64 { return float64(ns) * float64(processRate*speed) / float64(time.Minute) }
	for _, u := range s.uses {
		level = max(level-in(u.at-at), 0) + float64(u.units)
		total, at = total+u.units, u.at
		window = max(window, int64(math.Ceil(level))-processBurst)
		sofar = max(sofar, total-processBurst-int64(in(at-start.UnixNano())))
	}
	return sofar, window
}

// process is another process that runs a part of a test.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// taskOfProcess is the variable of the environment with the part of another process.
const taskOfProcess = "SLUICE_TEST_PROCESS"

func startProcess(t *testing.T, test string, task ...any) *process {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), taskOfProcess+"="+fmt.Sprintln(task...))
	stdin := must[io.WriteCloser](t)(cmd.StdinPipe())
	stdout := must[io.ReadCloser](t)(cmd.StdoutPipe())
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &process{cmd, stdin, bufio.NewScanner(stdout)}
}

// ready waits until the process says that it is.
func (p *process) ready(t *testing.T) {
	for p.lines.Scan() && p.lines.Text() != "ready" {
		t.Log(p.lines.Text())
	}
}

// end passes on what the process says until it ends. read reports whether it knows a line.
func (p *process) end(t *testing.T, read func(line string) bool) {
	var says strings.Builder
	for p.lines.Scan() {
		if !read(p.lines.Text()) {
			says.WriteString(p.lines.Text() + "\n")
		}
	}
	require.NoError(t, p.cmd.Wait(), says.String())
}

// collect adds a line about the use of a process.
func collect(line string, all []spending) bool {
	var i int
	var s spending
	var u use
	if n, _ := fmt.Sscanf(line, "use %d %d %d", &i, &u.at, &u.units); n == 3 {
		all[i].uses = append(all[i].uses, u)
		return true
	}
	n, _ := fmt.Sscanf(line, "end %d %d %d %d %d %d", &i, &s.whole, &s.cut, &s.denied, &s.local, &s.all)
	all[i].whole, all[i].cut, all[i].denied = all[i].whole+s.whole, all[i].cut+s.cut, all[i].denied+s.denied
	all[i].local, all[i].all = all[i].local+s.local, all[i].all+s.all
	return n == 6
}

// streamTask is the part of a process in one limit.
type streamTask struct {
	processStrategy
	limiter *distributed.Limiter
	speed   time.Duration
	ends    time.Time

	mu sync.Mutex
	spending
}

// streamsOfAProcess is the other process.
func streamsOfAProcess(t *testing.T, task string) {
	var addr string
	var index, speed int64
	var long, timeout time.Duration
	must[int](t)(fmt.Sscan(task, &addr, &index, &speed, &long, &timeout))
	c := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() }) // after the store: a pool that is closed reads connections in use
	store := newStore(t, c, distributed.WithTimeout(timeout), distributed.ProbeEvery(100*time.Millisecond),
		distributed.WithAssumedInstances(processCount)) // until they have counted one another
	tasks := make([]*streamTask, len(processStrategies))
	for i, s := range processStrategies {
		l := must[*distributed.Limiter](t)(store.TokenBucket(s.name, algo.PerMinute(processRate*speed), algo.Burst(processBurst)))
		require.Eventually(t, func() bool { acquire(t, l, "warm up", 0); return distributed.Instances(l) == processCount }, 20*time.Second, 10*time.Millisecond)
		tasks[i] = &streamTask{processStrategy: s, limiter: l, speed: time.Duration(speed)}
	}
	fmt.Println("ready")
	var start int64
	must[int](t)(fmt.Scan(&start))
	var group sync.WaitGroup
	for _, s := range tasks {
		s.ends = time.Unix(0, start).Add(long)
		for i := range processStream {
			group.Go(func() { s.serve(t, rand.New(rand.NewPCG(uint64(index), uint64(i)))) })
		}
	}
	group.Wait()
	out := bufio.NewWriter(os.Stdout)
	for i, s := range tasks {
		for _, u := range s.uses {
			fmt.Fprintln(out, "use", i, u.at, u.units)
		}
		fmt.Fprintln(out, "end", i, s.whole, s.cut, s.denied, s.local, s.all)
	}
	require.NoError(t, out.Flush())
}

// serve runs one stream after the other.
func (s *streamTask) serve(t *testing.T, rnd *rand.Rand) {
	for time.Now().Before(s.ends) {
		const mean, sigma = processMost / 5, 1
		cost := min(1+int64(math.Exp(math.Log(mean)-sigma*sigma/2.+sigma*rnd.NormFloat64())), processMost)
		m := s.begin(t, rnd)
		if m == nil {
			return
		}
		whole := s.produce(t, m, cost, rnd)
		m.Close()
		if !time.Now().Before(s.ends) {
			return
		}
		s.mu.Lock()
		if whole {
			s.whole++
		} else {
			s.cut++
		}
		s.mu.Unlock()
	}
}

// begin starts a stream as soon as it fits; nil if it never does.
func (s *streamTask) begin(t *testing.T, rnd *rand.Rand) *meter.Meter {
	for time.Now().Before(s.ends) {
		m := must[*meter.Meter](t)(meter.Start(ctx, s.limiter, "k", s.start, s.block))
		s.count(m.Decision)
		if m.Allowed {
			return m
		}
		s.wait(m.RetryAfter, rnd)
	}
	return nil
}

// wait is after a denial. Those that wait for one bucket do not come back together.
func (s *streamTask) wait(after time.Duration, rnd *rand.Rand) {
	time.Sleep(min(after+time.Duration(rnd.Int64N(int64(chunkTime/s.speed))), time.Until(s.ends)))
}

// produce reports whether the stream was not stopped by its limit.
func (s *streamTask) produce(t *testing.T, m *meter.Meter, cost int64, rnd *rand.Rand) bool {
	for cost > 0 && time.Now().Before(s.ends) {
		n := min(cost, processChunk)
		if s.before && !s.reserve(t, m, n, rnd) {
			return false
		}
		time.Sleep(chunkTime / s.speed)
		s.mu.Lock()
		s.uses = append(s.uses, use{time.Now().UnixNano(), n})
		s.mu.Unlock()
		fits := !s.after || s.reserve(t, m, n, rnd)
		m.Use(n)
		if cost -= n; !fits && cost > 0 {
			return false
		}
	}
	return true
}

// reserve reports whether n units fit, now or after a wait.
func (s *streamTask) reserve(t *testing.T, m *meter.Meter, n int64, rnd *rand.Rand) bool {
	for time.Now().Before(s.ends) {
		d := must[algo.Decision](t)(m.Reserve(ctx, n))
		s.count(d)
		if d.Allowed || !s.waits {
			return d.Allowed
		}
		s.wait(d.RetryAfter, rnd)
	}
	return false
}

// count counts decisions.
func (s *streamTask) count(d algo.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	if !d.Allowed {
		s.denied++
	}
	if d.Source != algo.SourceRemote {
		s.local++
	}
}

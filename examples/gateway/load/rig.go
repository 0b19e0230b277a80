package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// rig is the processes of a measurement. Those that are started end with it.
type rig struct {
	folder   string
	gateway  string // the binary
	upstream string // URL
	bare     string
	running  []*exec.Cmd
	byURL    map[string]int // process ids
}

func newRig() (*rig, error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		return nil, fmt.Errorf("wrk is missing (Debian: apt-get install wrk): %w", err)
	}
	folder, err := os.MkdirTemp("", "gateway-load")
	if err != nil {
		return nil, err
	}
	r := &rig{folder: folder, byURL: map[string]int{}, gateway: filepath.Join(folder, "gateway")}
	if err := r.build(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *rig) build() (err error) {
	build := exec.Command("go", "build", "-o", r.gateway, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	if err := os.WriteFile(r.script(), []byte(lua), 0o600); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if r.upstream, err = r.start(self, "upstream"); err != nil {
		return err
	}
	r.bare, err = r.start(self, "bare", r.upstream)
	return err
}

func (r *rig) close() {
	for _, c := range r.running {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	}
	_ = os.RemoveAll(r.folder) // it is in the folder for such things
}

var serving = regexp.MustCompile(`serving listen=(\S+)`)

// start starts a server and waits until it says where it listens.
func (r *rig) start(binary string, args ...string) (string, error) {
	c := exec.Command(binary, args...)
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	c.Stdout, c.Stderr = write, write
	if err := c.Start(); err != nil {
		return "", err
	}
	_ = write.Close() // the child has its own
	r.running = append(r.running, c)
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, read) }() // ends with the child
			r.byURL["http://"+m[1]] = c.Process.Pid
			return "http://" + m[1], nil
		}
	}
	return "", fmt.Errorf("%s %v ended before it served", binary, args)
}

// serveFile starts a gateway on a file. UPSTREAM is put in by the caller.
func (r *rig) serveFile(name, file string) (url, path string, err error) {
	path = filepath.Join(r.folder, name+".yaml")
	if err := r.write(path, file); err != nil {
		return "", "", err
	}
	url, err = r.start(r.gateway, "-config", path, "-poll", "50ms")
	return url, path, err
}

// write replaces a file in one step.
func (r *rig) write(path, file string) error {
	file = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + file
	if err := os.WriteFile(path+".new", []byte(file), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// served is how many requests have reached the upstream.
func (r *rig) served() (int64, error) {
	resp, err := http.Get(r.upstream + "/count")
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(b), 10, 64)
}

// processorTime is the processor time that the process behind a URL has used,
// user and system; 0 where there is no /proc.
func (r *rig) processorTime(url string) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.byURL[url]))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond // see proc(5); a tick is 1/100 s on Linux
	if len(fields) <= system {
		return 0
	}
	a, errA := strconv.Atoi(fields[user])
	b, errB := strconv.Atoi(fields[system])
	if errA != nil || errB != nil {
		return 0
	}
	return time.Duration(a+b) * tick
}

func (r *rig) script() string { return filepath.Join(r.folder, "report.lua") }

// lua makes wrk tell its figures in one line.
const lua = `
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d\n", summary.duration, summary.requests,
    e.status, e.connect + e.read + e.write + e.timeout, latency:percentile(50), latency:percentile(99)))
end
`

// result has the measurements of wrk.
type result struct {
	took     time.Duration
	requests int64
	denied   int64 // answers of 400 and above
	broken   int64 // connections and time-outs
	p50, p99 time.Duration
	// processor is the time that the process under test took.
	processor time.Duration
}

func (r result) perSecond() float64 { return float64(r.requests) / r.took.Seconds() }

// wrk runs wrk for some seconds over some connections.
func (r *rig) wrk(url string, connections, seconds int) (result, error) {
	out, err := exec.Command("wrk", "-t1", "-c", strconv.Itoa(connections), "-d", fmt.Sprintf("%ds", seconds),
		"-s", r.script(), url).CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	var got result
	var took, p50, p99 int64
	m := regexp.MustCompile(`RESULT .*`).Find(out)
	if _, err := fmt.Sscanf(string(m), "RESULT %d %d %d %d %d %d", &took, &got.requests, &got.denied, &got.broken, &p50, &p99); err != nil {
		return result{}, fmt.Errorf("wrk said %q: %w", out, err)
	}
	got.took = time.Duration(took) * time.Microsecond
	got.p50, got.p99 = time.Duration(p50)*time.Microsecond, time.Duration(p99)*time.Microsecond
	return got, nil
}

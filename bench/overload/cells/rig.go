package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// rig is a server process and a client for it.
type rig struct {
	spin, work, limiter string
	protocol            string // "HTTP/1.1", "TLS", "HTTP/2", manyClients or "gRPC"; empty: HTTP/1.1
	procs               int    // 0: as many as Go finds
	group               string // the control group of the server, or empty
	listener            bool
	args                []string // further ones of the server

	addr   string
	pid    int
	client *http.Client
	rpc    *grpc.ClientConn // over gRPC
}

// output is the first line that the server prints without arguments.
func output(bin string) (string, error) {
	out, err := exec.Command(bin).Output()
	return strings.TrimSpace(string(out)), err
}

// with runs the server while do measures it.
func (r rig) with(do func(rig) error) error {
	args := append([]string{"-spin", r.spin, "-work", r.work, "-limiter", r.limiter}, r.args...)
	transport := &http.Transport{
		MaxIdleConns: 20000, MaxIdleConnsPerHost: 20000, DisableCompression: true,
		// A dial outlives a client that gives up, and would hold a file for minutes.
		DialContext: (&net.Dialer{Timeout: patience}).DialContext,
	}
	scheme := "http"
	if r.protocol == "TLS" || r.http2() {
		args, scheme = append(args, "-tls"), "https"
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		transport.ForceAttemptHTTP2 = r.http2()
	}
	if r.listener {
		args = append(args, "-listener")
	}
	if r.protocol == "gRPC" {
		args = append(args, "-grpc")
	}
	cmd := exec.Command(*bin, args...)
	if r.group != "" {
		cmd = exec.Command("sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, r.group, *bin}, args...)...)
	}
	if r.procs > 0 {
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", r.procs))
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	r.addr, r.pid = strings.TrimSpace(line), cmd.Process.Pid
	if r.protocol == "gRPC" {
		if r.rpc, err = dialRPC(r.addr); err != nil {
			return err
		}
		defer func() { _ = r.rpc.Close() }()
	}
	through := newClients(transport, r.clients())
	defer through.close()
	r.client = &http.Client{Transport: through, Timeout: 2 * time.Second}
	target := scheme + "://" + r.addr + "/"
	r.addr = target
	return do(r)
}

// counts are the results of requests.
type counts struct {
	mu     sync.Mutex
	took   []time.Duration // of the answers with status 200
	denied int
	failed int
}

func (c *counts) all() int { return len(c.took) + c.denied + c.failed }

// share is n of all.
func (c *counts) share(n int) float64 { return float64(n) / float64(max(c.all(), 1)) }

func (c *counts) p99() time.Duration {
	if len(c.took) == 0 {
		return 0
	}
	slices.Sort(c.took)
	return c.took[len(c.took)*99/100]
}

// good is the number of answers within slo.
func (c *counts) good(slo time.Duration) (n int) {
	for _, d := range c.took {
		if d <= slo {
			n++
		}
	}
	return n
}

// ask sends one request, which was due at start.
func (r rig) ask(c *counts, start time.Time) {
	if r.rpc != nil {
		ok := r.call("", "", 0)
		c.mu.Lock()
		defer c.mu.Unlock()
		if ok {
			c.took = append(c.took, time.Since(start))
		} else {
			c.denied++
		}
		return
	}
	resp, err := r.client.Get(r.addr)
	status := 0
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		status = resp.StatusCode
	}
	took := time.Since(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.failed++
	case status == http.StatusOK:
		c.took = append(c.took, took)
	default:
		c.denied++
	}
}

// open sends n requests at once, at even distances, for d.
func (r rig) open(rate float64, n int, d time.Duration) *counts {
	c := &counts{}
	var all sync.WaitGroup
	every := time.Duration(float64(n) / rate * 1e9)
	for due, end := time.Now(), time.Now().Add(d); due.Before(end); due = due.Add(every) {
		time.Sleep(time.Until(due))
		for range n {
			all.Go(func() { r.ask(c, due) })
		}
	}
	all.Wait()
	return c
}

// closed keeps n requests on their way for d.
func (r rig) closed(n int, d time.Duration) *counts {
	c := &counts{}
	var all sync.WaitGroup
	for end := time.Now().Add(d); n > 0; n-- {
		all.Go(func() {
			for time.Now().Before(end) {
				r.ask(c, time.Now())
			}
		})
	}
	all.Wait()
	return c
}

// capacity is the rate of a closed loop without a limiter.
func (r rig) capacity() (rate float64, err error) {
	r.limiter, r.listener, r.args = "none", false, nil
	err = r.with(func(r rig) error {
		r.closed(r.atOnce(), time.Second/2)
		rate = float64(len(r.closed(r.atOnce(), length()).took)) / length().Seconds()
		return nil
	})
	if err == nil && rate == 0 {
		err = fmt.Errorf("the server without a limiter answered nothing")
	}
	return rate, err
}

// atOnce is the number of requests on their way in a closed loop that takes all that the server can do.
func (r rig) atOnce() int { return 16 * max(r.procs, 1) }

// hold opens n connections without a request, until it is told to close them.
func (r rig) hold(n int) (closeAll func(), err error) {
	var all []net.Conn
	closeAll = func() {
		for _, c := range all {
			_ = c.Close()
		}
	}
	addr := strings.TrimSuffix(strings.TrimPrefix(r.addr, "http://"), "/")
	for range n {
		c, err := net.DialTimeout("tcp", addr, 2*time.Second)
		if err != nil {
			return closeAll, err
		}
		all = append(all, c)
	}
	return closeAll, nil
}

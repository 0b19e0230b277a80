//go:build unix

package redistest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is one redis-server process.
type Server struct {
	t    testing.TB
	port int
	conf string // file to start from; sentinels insist on one
	args []string
	mu   sync.Mutex
	cmd  *exec.Cmd // nil while stopped
	gone chan struct{}
}

// Start runs a server on a free port until the test ends. The args are
// added to its command line: "--maxmemory", "2mb".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, args: args}
	t.Cleanup(s.Kill)
	const attempts = 10 // another process may take the port before the server does
	for range attempts {
		s.port = freePort(t)
		if s.launch() {
			return s
		}
	}
	t.Fatalf("redistest: redis-server did not start in %d attempts", attempts)
	return nil
}

// StartLoading runs a server that loads its data for half a minute and answers LOADING.
func StartLoading(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, port: freePort(t)}
	t.Cleanup(s.Kill)
	source := Start(t, "--dbfilename", "slow.rdb", "--enable-debug-command", "yes")
	source.Do("DEBUG", "POPULATE", 5000)
	source.Do("SAVE")
	dir := source.Do("CONFIG", "GET", "dir").(map[any]any)["dir"].(string)
	source.Kill()
	s.args = []string{"--dbfilename", "slow.rdb", "--dir", dir, "--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"}
	if !s.launch() {
		t.Fatalf("redistest: redis-server did not start on port %d", s.port)
	}
	return s
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Client connects to the server with go-redis' defaults until the test ends.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Do runs one command on a connection of its own and returns the reply.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	v, err := s.do(args...)
	if err != nil {
		s.t.Fatalf("redistest: %v: %v", args, err)
	}
	return v
}

func (s *Server) do(args ...any) (any, error) {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	defer func() { _ = c.Close() }()
	return c.Do(context.Background(), args...).Result()
}

// Kill ends the process as kill -9 does: no shutdown, no last words.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.gone
	s.cmd = nil
}

// Pause stops the process with SIGSTOP: connections stay open and nothing
// answers. Resume lets it run again.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// Restart starts a killed server again on the same port, empty.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if !s.launch() {
		s.t.Fatalf("redistest: redis-server did not restart on port %d", s.port)
	}
}

// Flush deletes all keys.
func (s *Server) Flush() { s.t.Helper(); s.Do("FLUSHALL") }

// Fill writes n keys of size bytes, for tests that run out of memory. It stops
// at the first error.
func (s *Server) Fill(n, size int) {
	c := s.Client()
	value := make([]byte, size)
	for i := range n {
		if c.Set(context.Background(), fmt.Sprintf("fill:%d", i), value, time.Minute).Err() != nil {
			return
		}
	}
}

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

// launch starts the process and waits until it answers; false if it ended
// before that.
func (s *Server) launch() bool {
	s.t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("SLUICE_REDIS_SERVER"), "redis-server"))
	if err != nil {
		s.t.Fatal("redistest: redis-server is not installed: apt-get install redis-server, or brew install redis")
	}
	cmd := exec.Command(path, s.commandLine()...)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	gone := make(chan struct{})
	go func() { _ = cmd.Wait(); close(gone) }()
	s.mu.Lock()
	s.cmd, s.gone = cmd, gone
	s.mu.Unlock()
	return s.answers(gone)
}

func (s *Server) commandLine() []string {
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.t.TempDir()}
	if s.conf != "" {
		return append(append([]string{s.conf}, args...), s.args...)
	}
	return append(append(args, "--save", "", "--appendonly", "no"), s.args...)
}

// answers polls until the server replies to anything at all.
func (s *Server) answers(gone <-chan struct{}) bool {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
		if err == nil {
			_ = conn.SetDeadline(time.Now().Add(time.Second))
			_, _ = conn.Write([]byte("PING\r\n"))
			n, _ := conn.Read(make([]byte, 64))
			_ = conn.Close()
			if n > 0 {
				return true
			}
		}
		select {
		case <-gone:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}

// freePort finds a port that is free, and so is the one 10000 above it, which
// a cluster node takes for its bus.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port, ok := listenable(0)
		if !ok || port > 55000 {
			continue
		}
		if _, ok := listenable(port + 10000); ok {
			return port
		}
	}
	t.Fatal("redistest: no free port")
	return 0
}

func listenable(port int) (int, bool) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, false
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, true
}

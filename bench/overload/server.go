package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// server is a process on a core of its own.
type server struct {
	cmd  *exec.Cmd
	addr string
}

func startServer(bin string, args ...string) (*server, error) {
	cmd := exec.Command("taskset", append([]string{"-c", "0", bin}, args...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("the server %v did not start: %w", args, err)
	}
	return &server{cmd, strings.TrimSpace(line)}, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// cpu is the processor time that the process has used, in steps of 10 ms.
func (s *server) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// ask runs the server's program without arguments and returns what it prints:
// the steps of work that take a millisecond here.
func ask(bin string) (string, error) {
	s, err := startServer(bin)
	if err != nil {
		return "", err
	}
	_ = s.cmd.Wait()
	return s.addr, nil
}

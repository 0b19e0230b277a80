package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// server is a process that has said where it listens.
type server struct {
	cmd    *exec.Cmd
	addr   string
	said   bytes.Buffer
	exited chan struct{} // closed when it has
}

func startServer(cmd *exec.Cmd) (*server, error) {
	s := &server{cmd: cmd, exited: make(chan struct{})}
	cmd.Stderr = &s.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	in := bufio.NewReader(out)
	line, err := in.ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, in) // a write to the log must not wait for a reader
		_ = cmd.Wait()                 // its state says why it ended
		close(s.exited)
	}()
	if err != nil {
		<-s.exited
		return nil, s.ended()
	}
	s.addr = strings.TrimSpace(line)
	return s, nil
}

// stop ends the process. It is an error if that has ended by itself.
func (s *server) stop() error {
	select {
	case <-s.exited:
		return s.ended()
	default:
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	<-s.exited
	return nil
}

func (s *server) ended() error {
	return fmt.Errorf("%s ended: %s; it said: %s", strings.Join(s.cmd.Args, " "), s.cmd.ProcessState, last(s.said.String()))
}

// cpu is the processor time that the process has used, in steps of 10 ms; Linux only.
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

// spinOf runs the server's program without arguments and returns what it prints:
// the steps of work that take a millisecond here.
func spinOf(cmd *exec.Cmd) (string, error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(bytes.TrimSpace(out)), err
}

// last is the last line of what a server has said, of a panic the first that is known. The peers log
// as they like: that is shown only if the server fails.
func last(said string) string {
	if _, rest, panicked := strings.Cut(said, "panic: "); panicked {
		first, _, _ := strings.Cut(rest, "\n")
		return "panic: " + first
	}
	said = strings.TrimSpace(said)
	return said[strings.LastIndexByte(said, '\n')+1:]
}

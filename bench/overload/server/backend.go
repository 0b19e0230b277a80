package main

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// startBackend starts what the proxy passes requests on to: this program, on the processor
// of the load, which works little and waits 5 ms. It ends with this process.
func startBackend(perMS int) (addr string, err error) {
	cmd := exec.Command("taskset", "-c", "1", os.Args[0], "-spin", strconv.Itoa(perMS), "-work", "20us+5ms")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), err
}

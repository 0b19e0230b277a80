package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// startBackend starts what the proxy passes requests on to: this program, on the processor
// of the load. It ends with this process.
func startBackend() (addr string, err error) {
	cmd := exec.Command("taskset", "-c", "1", os.Args[0], "-backend")
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

// serveBackend answers each request, which has no body, after 5 ms. It is not a net/http server:
// that would take more of the processor of the load than there is beside the generator, and the
// cell would measure a backend that starves.
func serveBackend(ln net.Listener) error {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go answer(conn)
	}
}

func answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		if err != nil || !bytes.Equal(line, []byte("\r\n")) {
			continue
		}
		time.Sleep(5 * time.Millisecond)
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\ndone\n"); err != nil {
			return
		}
	}
}

//go:build unix

package redistest

import (
	"bufio"
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Wire is the way to a real server from a bubble of testing/synctest: its connections are pipes, so a
// [Fault] takes virtual time, and the load of the machine none. Of a fault it knows Refuse,
// BlackHole and Delay. The server starts outside the bubble.
type Wire struct {
	target string
	mu     sync.Mutex
	fault  Fault
	conns  map[net.Conn]bool
	served sync.WaitGroup
}

// Wired returns a client in the bubble of t, and its way to s.
func Wired(t testing.TB, s *Server) (*redis.Client, *Wire) {
	w := &Wire{target: s.Addr(), conns: map[net.Conn]bool{}}
	c := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1", // no name to look up
		Dialer: func(context.Context, string, string) (net.Conn, error) { return w.dial() }, DialerRetries: 1, ReadTimeout: time.Minute,
	})
	t.Cleanup(func() {
		_ = c.Close()
		w.Set(Fault{Refuse: true})
		w.served.Wait()
	})
	return c, w
}

// Set replaces the fault. Refuse, and the end of a black hole, reset the open connections.
func (w *Wire) Set(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Refuse || w.fault.BlackHole {
		for c := range w.conns {
			_ = c.Close()
		}
		clear(w.conns)
	}
	w.fault = f
}

func (w *Wire) now() Fault { w.mu.Lock(); defer w.mu.Unlock(); return w.fault }

func (w *Wire) dial() (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault.Refuse {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	w.conns[far] = true
	w.served.Go(func() { w.serve(far, server) })
	return near, nil
}

// serve passes commands on, one after the other. It waits for the server only while that works:
// virtual time stands still then.
func (w *Wire) serve(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	const room = 1 << 20 // of all commands that a client writes at once, before it reads
	commands, replies := bufio.NewReaderSize(client, room), bufio.NewReader(server)
	var all []byte
	for {
		raw, _, err := readFrame(commands)
		if err != nil {
			return
		}
		if w.now().BlackHole {
			continue
		}
		if _, err = server.Write(raw); err == nil {
			raw, _, err = readFrame(replies)
		}
		if err != nil {
			return
		}
		if all = append(all, raw...); commands.Buffered() > 0 { // written at once, answered at once
			continue
		}
		time.Sleep(w.now().Delay)
		if !w.now().BlackHole {
			_, err = client.Write(all)
		}
		if all = all[:0]; err != nil {
			return
		}
	}
}

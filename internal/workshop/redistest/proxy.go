//go:build unix

package redistest

import (
	"bufio"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is an effect of a [Proxy] on the traffic. The zero Fault passes it on.
type Fault struct {
	Refuse    bool          // nothing listens
	Reset     bool          // connections are reset as soon as they are made
	BlackHole bool          // requests are read and never passed on
	Delay     time.Duration // each reply comes this much later, those of a pipeline together
	Jitter    time.Duration // and up to this much more
	Slice     bool          // replies arrive in pieces of one to three bytes

	// Error answers the commands that run scripts, such as "LOADING ...". The
	// server gets a PING in their place, so that the order of replies stays.
	Error string

	// Only the Kth reply, from 1, to Command (lower case, as sent) is hit,
	// after the server has executed it; every one if Kth is 0.
	Kth       int
	Command   string
	Lose      bool // the reply disappears, the connection stays
	Cut       bool // the connection is reset in place of the reply
	HalfClose bool // the sending side towards the client is closed in its place
}

// Proxy relays between clients and a server and understands enough of RESP to
// tell which reply belongs to which command.
type Proxy struct {
	t      testing.TB
	target string
	addr   string
	mu     sync.Mutex
	fault  Fault
	seen   int // replies to fault.Command since Set
	hits   int
	listen net.Listener
	served sync.WaitGroup
	free   func() // gives the port up while nothing listens
	conns  map[net.Conn]bool
}

// StartProxy listens on a free port until the test ends.
func StartProxy(t testing.TB, target *Server) *Proxy {
	t.Helper()
	p := &Proxy{t: t, target: target.Addr(), addr: "127.0.0.1:0", free: func() {}, conns: map[net.Conn]bool{}}
	p.open()
	t.Cleanup(func() { p.Set(Fault{Refuse: true}); p.free() })
	return p
}

// Addr is host:port.
func (p *Proxy) Addr() string { return p.addr }

// Hits counts the replies that Lose, Cut or HalfClose has hit since Set.
func (p *Proxy) Hits() int { p.mu.Lock(); defer p.mu.Unlock(); return p.hits }

// Set replaces the fault. Refuse and Reset also reset the open connections;
// bytes that a black hole has swallowed are lost when it ends.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	was := p.fault
	p.fault, p.seen, p.hits = f, 0, 0
	if f.Refuse && p.listen != nil {
		_ = p.listen.Close()
		p.listen, p.free = nil, hold(p.addr)
	}
	if f.Refuse || f.Reset || was.BlackHole {
		for c := range p.conns {
			reset(c)
		}
	}
	p.mu.Unlock()
	if !f.Refuse {
		p.open()
	}
}

func (p *Proxy) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listen != nil {
		return
	}
	l, err := net.Listen("tcp", p.addr)
	p.free()
	if err != nil {
		p.t.Errorf("redistest: proxy: %v", err)
		return
	}
	p.listen, p.addr = l, l.Addr().String()
	p.served.Go(func() { p.accept(l) })
}

// Wait refuses connections from now on and waits until all have ended.
func (p *Proxy) Wait() {
	p.Set(Fault{Refuse: true})
	p.served.Wait()
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || p.now().Reset {
			reset(client)
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.track(client, true)
		commands := make(chan request, 1<<16)
		p.served.Go(func() { p.requests(client, server, commands) })
		p.served.Go(func() { p.replies(client, server, commands) })
	}
}

func (p *Proxy) now() Fault { p.mu.Lock(); defer p.mu.Unlock(); return p.fault }

func (p *Proxy) track(c net.Conn, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		p.conns[c] = true
	} else {
		delete(p.conns, c)
	}
}

// request is a command on its way.
type request struct {
	name   string
	answer string // in place of the server's; empty: the server's
}

// requests passes whole commands on and notes their names.
func (p *Proxy) requests(client, server net.Conn, commands chan<- request) {
	defer func() { _ = server.Close() }()
	defer close(commands)
	r := bufio.NewReader(client)
	for {
		raw, name, err := readFrame(r)
		if err != nil {
			return
		}
		f := p.now()
		if f.BlackHole {
			continue
		}
		q := request{name: name}
		if f.Error != "" && (name == "evalsha" || name == "eval") {
			raw, q.answer = []byte("PING\r\n"), "-"+f.Error+"\r\n"
		}
		commands <- q
		if _, err := server.Write(raw); err != nil {
			return
		}
	}
}

// reply is a reply on its way back, and what happens to it at an instant.
type reply struct {
	raw   []byte
	fault Fault
	hit   bool
	at    time.Time
}

// replies passes whole replies back, each to the fate that the fault has for
// the reply to its command. A reply is delayed from its own arrival, not from
// the end of the one before: a pipeline takes one round trip, as on a long way.
func (p *Proxy) replies(client, server net.Conn, commands <-chan request) {
	back := make(chan reply, 1<<16)
	defer close(back)
	p.served.Go(func() { p.back(client, back) })
	r := bufio.NewReader(server)
	for {
		raw, _, err := readFrame(r)
		if err != nil {
			return
		}
		q := <-commands
		if q.answer != "" {
			raw = []byte(q.answer)
		}
		f, hit := p.fate(q.name)
		back <- reply{raw, f, hit, time.Now().Add(f.Delay + time.Duration(rand.Int64N(int64(f.Jitter)+1)))}
	}
}

// back delivers replies when they are due, in their order.
func (p *Proxy) back(client net.Conn, replies <-chan reply) {
	defer p.track(client, false)
	defer func() { _ = client.Close() }()
	for b := range replies {
		time.Sleep(time.Until(b.at))
		switch {
		case b.hit && b.fault.Lose, p.now().BlackHole:
			continue
		case b.hit && b.fault.Cut:
			reset(client)
			return
		case b.hit && b.fault.HalfClose:
			_ = client.(*net.TCPConn).CloseWrite()
			continue
		}
		if write(client, b.raw, b.fault.Slice) != nil {
			return
		}
	}
}

// fate is the fault in force and whether the reply to command is to be hit.
func (p *Proxy) fate(command string) (f Fault, hit bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.Command != "" && command == p.fault.Command {
		p.seen++
		if hit = p.fault.Kth == 0 || p.seen == p.fault.Kth; hit {
			p.hits++
		}
	}
	return p.fault, hit
}

func write(c net.Conn, raw []byte, slice bool) error {
	for slice && len(raw) > 3 {
		n := 1 + rand.IntN(3)
		if _, err := c.Write(raw[:n]); err != nil {
			return err
		}
		raw = raw[n:]
	}
	_, err := c.Write(raw)
	return err
}

// reset closes c so that the other side sees a connection reset.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// aloneConn is a connection on which callers send their own commands, one at a time.
type aloneConn struct {
	net.Conn
	out, in []byte // in: what has come of the reply
	reply   []int64
	sent    time.Time

	cmd  Command // under way
	cmds [1]*Command
	reqs [1]*Request

	mu   sync.Mutex
	turn int // counts commands: a context that ends late interrupts none but its own
}

func newAloneConn(c net.Conn) *aloneConn {
	o := &aloneConn{Conn: c}
	o.cmds[0] = &o.cmd
	return o
}

// interruptedBy ends read when ctx ends, until the function that it returns is called.
func (o *aloneConn) interruptedBy(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	turn := o.turn
	end := context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.turn == turn {
			_ = o.SetReadDeadline(time.Unix(1, 0))
		}
	})
	return func() {
		end()
		o.mu.Lock()
		defer o.mu.Unlock()
		o.turn++
	}
}

// read reads until the reply is complete: an array of integers, or an error. It may be called
// again after a timeout.
func (o *aloneConn) read() error {
	for {
		rest, done, err := o.parse(o.in)
		if done || err != nil {
			if len(rest) > 0 && err == nil {
				err = errReply
			}
			return err
		}
		if cap(o.in)-len(o.in) < 64 {
			o.in = append(make([]byte, 0, 2*cap(o.in)+512), o.in...)
		}
		n, err := o.Read(o.in[len(o.in):cap(o.in)])
		o.in = o.in[:len(o.in)+n]
		if err != nil && n == 0 {
			return err
		}
	}
}

// parse reads a reply. Not done: more has to come.
func (o *aloneConn) parse(in []byte) (rest []byte, done bool, err error) {
	kind, n, rest, ok := line(in)
	switch {
	case !ok:
		return nil, false, nil
	case kind == '-':
		return rest, true, ReplyError(in[1 : len(in)-len(rest)-2])
	case kind != '*' || n < 0:
		return rest, true, errReply
	}
	o.reply = o.reply[:0]
	for range n {
		var x int64
		if kind, x, rest, ok = line(rest); !ok {
			return nil, false, nil
		} else if kind != ':' {
			return rest, true, errReply
		}
		o.reply = append(o.reply, x)
	}
	return rest, true, nil
}

// line reads the first line: its kind and its number, if it has one.
func line(in []byte) (kind byte, n int64, rest []byte, ok bool) {
	end := bytes.IndexByte(in, '\n')
	if end < 2 {
		return 0, 0, nil, false
	}
	n, err := strconv.ParseInt(string(in[1:end-1]), 10, 64)
	if err != nil {
		n = -1
	}
	return in[0], n, in[end+1:], true
}

// appendWords appends a command in the protocol of Redis.
func appendWords(b []byte, words []any) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(words)), 10), "\r\n"...)
	var text [20]byte
	for _, w := range words {
		switch w := w.(type) {
		case string:
			b = appendWord(b, w)
		case int:
			b = appendWord(b, strconv.AppendInt(text[:0], int64(w), 10))
		case *int64:
			b = appendWord(b, strconv.AppendInt(text[:0], *w, 10))
		}
	}
	return b
}

func appendWord[W string | []byte](b []byte, w W) []byte {
	b = append(strconv.AppendInt(append(b, '$'), int64(len(w)), 10), "\r\n"...)
	return append(append(b, w...), "\r\n"...)
}

// dialer returns a function that opens a connection as the client would: nil where that takes
// more than its address, TLS, user and database.
func (g goRedis) dialer() func(context.Context) (net.Conn, error) {
	c, is := g.client.(*redis.Client)
	if !is {
		return nil
	}
	o := c.Options()
	if o.OnConnect != nil || o.StreamingCredentialsProvider != nil || o.Limiter != nil {
		return nil
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := o.Dialer(ctx, o.Network, o.Addr)
		if err != nil {
			return nil, err
		}
		if at, ok := ctx.Deadline(); ok {
			_ = conn.SetDeadline(at)
		}
		if err := greet(ctx, conn, o); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, conn.SetDeadline(time.Time{})
	}
}

// greet sends user, password and database.
func greet(ctx context.Context, conn net.Conn, o *redis.Options) (err error) {
	user, password := o.Username, o.Password
	switch {
	case o.CredentialsProviderContext != nil:
		user, password, err = o.CredentialsProviderContext(ctx)
	case o.CredentialsProvider != nil:
		user, password = o.CredentialsProvider()
	}
	var commands [][]any
	switch {
	case err != nil:
		return err
	case user != "":
		commands = append(commands, []any{"auth", user, password})
	case password != "":
		commands = append(commands, []any{"auth", password})
	}
	if o.DB > 0 {
		commands = append(commands, []any{"select", o.DB})
	}
	var answer [256]byte
	for _, words := range commands {
		if _, err := conn.Write(appendWords(nil, words)); err != nil {
			return err
		}
		if n, err := conn.Read(answer[:]); err != nil || !bytes.HasPrefix(answer[:n], []byte("+OK")) {
			return errors.Join(err, fmt.Errorf("%s: %q", words[0], answer[:n]))
		}
	}
	return nil
}

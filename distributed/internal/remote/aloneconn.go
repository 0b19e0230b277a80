package remote

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// aloneConn is a connection on which callers send their own commands, one at a time.
type aloneConn struct {
	net.Conn
	out, in []byte // in: the reply as far as it has been read
	reply   []int64
	opened  time.Time
	sent    time.Time

	cmd  Command // under way
	cmds [1]*Command
	reqs [1]*Request

	mu   sync.Mutex
	turn int // counts commands, so that a context that ends late interrupts only its own
}

func newAloneConn(c net.Conn) *aloneConn {
	o := &aloneConn{Conn: c, opened: time.Now()}
	o.sent = o.opened
	o.cmds[0] = &o.cmd
	return o
}

// usable reports whether the connection is open and within the client's limits of age and idleness.
func (o *aloneConn) usable(longest, idle time.Duration) bool {
	unused := time.Since(o.sent)
	return (longest <= 0 || time.Since(o.opened) < longest) && (idle <= 0 || unused < idle) &&
		(unused < trusted || alive(o.Conn))
}

// interruptedBy makes read fail when ctx ends, until stop is called.
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

// parse parses in as a reply into o.reply. done is false if the reply is incomplete.
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

// line parses the first line of in: its kind, and its number n, -1 if it has none.
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

// hooked reports whether c has hooks, which must see its dials and commands. go-redis does not
// export them; if a version stores them elsewhere, hooked reports true.
func hooked(c *redis.Client) bool {
	hooks := reflect.ValueOf(c).Elem().FieldByName("slice") // of the embedded hooksMixin
	return !hooks.IsValid() || hooks.Kind() != reflect.Slice || hooks.Len() > 0
}

// ownConns returns the settings for connections beside the client's pool: none if its hooks, its
// Limiter or a provider of credentials must see the commands, or if it bounds its connections.
func (g goRedis) ownConns() (own aloneConns) {
	c, is := g.client.(*redis.Client)
	if !is || hooked(c) {
		return own
	}
	o := *c.Options()
	if o.StreamingCredentialsProvider != nil || o.Limiter != nil || o.MaxActiveConns > 0 {
		return own
	}
	own.longest, own.unused = o.ConnMaxLifetime, o.ConnMaxIdleTime
	own.open = func(ctx context.Context) (net.Conn, error) { return open(ctx, o) }
	return own
}

// open opens a connection as a client with options o does: a temporary client does the handshake.
func open(ctx context.Context, o redis.Options) (net.Conn, error) {
	conn, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return nil, err
	}
	o.Dialer = func(context.Context, string, string) (net.Conn, error) { return lent{conn}, nil }
	o.Protocol, o.MinIdleConns, o.DialerRetries = 2, 0, 1
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	greeter := redis.NewClient(&o)
	err = greeter.Process(ctx, once{redis.NewIntSliceCmd(ctx, "time")})
	_ = greeter.Close()
	stop()
	if err = cmp.Or(err, ctx.Err(), conn.SetDeadline(time.Time{})); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// lent keeps the temporary client from closing the connection.
type lent struct{ net.Conn }

func (lent) Close() error { return nil }

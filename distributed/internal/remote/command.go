package remote

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Command is one run of a script, which a [Transport] sends to Redis. A Transport must never
// send it twice: the first run may have charged although its reply was lost.
type Command struct {
	script     *Script
	withSource bool // EVAL with the script's source, for a server that has lost it
	again      bool // sent before, and not executed
	requests   []*Request
	deadline   string // by the server's clock, as an argument of the script; empty: none

	reply []int64
	err   error
}

// Words returns the words of the command; package distributed documents it.
func (c *Command) Words() (words []string, keys int) {
	for _, w := range c.words() {
		switch w := w.(type) {
		case string:
			words = append(words, w)
		case int:
			keys = w
			words = append(words, strconv.Itoa(w))
		case *int64:
			words = append(words, strconv.FormatInt(*w, 10))
		}
	}
	return words, keys
}

// Done stores the reply or the error; package distributed documents it.
func (c *Command) Done(reply []int64, err error) { c.reply, c.err = reply, err }

// words returns the command as go-redis takes it.
func (c *Command) words() []any {
	n, keys := 3, 0
	for _, r := range c.requests {
		n += len(r.Keys) + len(r.Args)
		keys += len(r.Keys)
	}
	words := make([]any, 0, n)
	if source, word := c.script.text(); c.withSource {
		words = append(words, "eval", source, keys)
	} else {
		words = append(words, "evalsha", word, keys)
	}
	for _, r := range c.requests {
		for _, k := range r.Keys {
			words = append(words, k)
		}
	}
	for _, r := range c.requests {
		for i := range r.Args {
			words = append(words, &r.Args[i]) // a pointer needs no allocation
		}
	}
	if c.deadline != "" {
		words = append(words, c.deadline)
	}
	return words
}

// wanted reports whether any request still needs the reply.
func (c *Command) wanted() bool {
	return slices.ContainsFunc(c.requests, func(r *Request) bool { return r.oneWay || r.state.Load() == pending })
}

// complete delivers the reply and returns every request to its caller.
func (c *Command) complete(sent time.Time) {
	c.deliver()
	for _, r := range c.requests {
		r.Sent = sent
		r.complete()
	}
}

// deliver stores in every request its part of the reply.
func (c *Command) deliver() {
	reply, err := c.reply, c.err
	want := 1
	for _, r := range c.requests {
		want += len(r.Reply)
	}
	if err == nil && len(reply) != want {
		err = errReply
	}
	at := 1
	for _, r := range c.requests {
		if r.Err = err; err == nil {
			r.Now = reply[0]
			at += copy(r.Reply, reply[at:])
		}
	}
}

// newCommands makes one command for each script if the node accepts keys of several
// slots (manySlots), otherwise one for each request. Requests of a script keep their order.
func newCommands(requests []*Request, manySlots bool) (cmds []*Command) {
	for i, r := range requests {
		same := -1
		if manySlots {
			same = slices.IndexFunc(cmds, func(c *Command) bool { return c.script == r.Script })
		}
		if same >= 0 {
			cmds[same].requests = append(cmds[same].requests, r)
		} else {
			cmds = append(cmds, &Command{script: r.Script, requests: requests[i : i+1 : i+1]})
		}
	}
	return cmds
}

// send runs cmds and stores the results in them. It repeats a command only if the server
// certainly did not execute it and a request still needs the reply: once, or twice if the
// server had lost the script and its clock has stepped.
func (n *Node) send(ctx context.Context, cmds []*Command) {
	n.do(ctx, cmds)
	for range 2 {
		var again []*Command
		for i, c := range cmds {
			f := Classify(c.err)
			if c.wanted() && (f == NoScript || errors.Is(c.err, errExpired) || !c.again && (f == NotExecuted || passing(c.err))) {
				cmds[i] = &Command{script: c.script, requests: c.requests, withSource: c.withSource || f == NoScript, again: true}
				again = append(again, cmds[i])
			}
		}
		if len(again) == 0 || ctx.Err() != nil {
			return
		}
		n.do(ctx, again)
	}
}

// do sends cmds once, with the deadlines of their callers.
func (n *Node) do(ctx context.Context, cmds []*Command) {
	for _, c := range cmds {
		c.deadline = n.clock.deadline(c.requests)
	}
	sent := time.Now()
	n.client.transport.Do(ctx, cmds)
	for _, c := range cmds {
		n.note(c, sent)
	}
}

// note records the server's clock, and whether c reached the server too late.
func (n *Node) note(c *Command, sent time.Time) {
	if c.err == nil && len(c.reply) > 0 {
		n.client.router.answered()
		n.clock.note(sent, c.reply[0])
		if len(c.reply) == 1 {
			c.err = errExpired
		}
	}
	if Classify(c.err) == NoScript {
		n.loaded.Store(false)
	}
}

// nodeClock estimates the server's clock from the latest reply: never behind it.
type nodeClock struct{ ahead atomic.Int64 } // of this process's, in microseconds; 0: unknown

func (n *nodeClock) note(sent time.Time, now int64) { n.ahead.Store(now - sent.UnixMicro()) }

// deadline returns when the last caller of requests stops waiting. Corrections have none.
func (n *nodeClock) deadline(requests []*Request) string {
	ahead, last := n.ahead.Load(), int64(0)
	if ahead == 0 || requests[0].oneWay {
		return ""
	}
	for _, r := range requests {
		last = max(last, r.until.Load())
	}
	return "d" + strconv.FormatInt(last+ahead+2, 10)
}

// resendBySlot splits the commands that the node rejected, and so did not execute, because
// their keys are in several slots, and sends their requests one by one.
func (n *Node) resendBySlot(ctx context.Context, cmds []*Command) []*Command {
	if !slices.ContainsFunc(cmds, func(c *Command) bool { return SeveralSlots(c.err) }) {
		return cmds
	}
	n.client.router.noteApart()
	var done, again []*Command
	for _, c := range cmds {
		if len(c.requests) > 1 && SeveralSlots(c.err) {
			again = append(again, newCommands(c.requests, false)...)
		} else {
			done = append(done, c)
		}
	}
	n.send(ctx, again)
	return append(done, again...)
}

// deadline is a context with a deadline for code that asks for one, such as a
// dialer. Unlike context.WithDeadline, it needs no timer for each batch.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

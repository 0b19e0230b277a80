package remote

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Command is one run of a script, which a [Transport] sends to Redis. It must never be
// sent twice: the first run may have charged although its reply was lost.
type Command struct {
	script     *Script
	withSource bool // EVAL with the script's source, for a server that has lost it
	again      bool // it was sent before, and not executed
	requests   []*Request
	deadline   string // by the server's clock, as the script takes it; empty: none

	reply []int64
	err   error
}

// Words returns the command as it is sent; package distributed documents it.
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

// Done gives the command its reply or its error; package distributed documents it.
func (c *Command) Done(reply []int64, err error) { c.reply, c.err = reply, err }

// words are the command as go-redis takes it.
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

// complete gives every request its part of the reply, and returns it to its
// caller.
func (c *Command) complete(sent time.Time) {
	c.deliver()
	for _, r := range c.requests {
		r.Sent = sent
		r.complete()
	}
}

// deliver gives every request its part of the reply.
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

// newCommands makes as few commands as keep the order of the requests of each
// script: one for each script where the node accepts keys of several slots,
// else one for each request.
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

// send runs the commands and leaves each result in its command. A command that
// was certainly not executed is sent again if its reply is still wanted: once, or twice if the
// server had lost the script and its clock has stepped. No other command is.
func (q *Node) send(ctx context.Context, cmds []*Command) {
	q.do(ctx, cmds)
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
		q.do(ctx, again)
	}
}

// do sends the commands once, with the deadlines of their callers.
func (q *Node) do(ctx context.Context, cmds []*Command) {
	for _, c := range cmds {
		c.deadline = q.clock.deadline(c.requests)
	}
	sent := time.Now()
	q.client.transport.Do(ctx, cmds)
	for _, c := range cmds {
		q.note(c, sent)
	}
}

// note notes the server's clock, and whether the command came too late.
func (q *Node) note(c *Command, sent time.Time) {
	if c.err == nil && len(c.reply) > 0 {
		q.client.router.answered()
		q.clock.note(sent, c.reply[0])
		if len(c.reply) == 1 {
			c.err = errExpired
		}
	}
	if Classify(c.err) == NoScript {
		q.loaded.Store(false)
	}
}

// nodeClock is the server's clock, as the latest reply shows it: never behind it.
type nodeClock struct{ ahead atomic.Int64 } // of this process's, in microseconds; 0: not known

func (n *nodeClock) note(sent time.Time, now int64) { n.ahead.Store(now - sent.UnixMicro()) }

// deadline is when the last caller of the requests stops waiting. Corrections have none.
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

// resendBySlot sends request by request the commands that a node rejects
// because their keys are in several slots. A rejected command has not been executed.
func (q *Node) resendBySlot(ctx context.Context, cmds []*Command) []*Command {
	if !slices.ContainsFunc(cmds, func(c *Command) bool { return SeveralSlots(c.err) }) {
		return cmds
	}
	q.client.router.noteApart()
	var done, again []*Command
	for _, c := range cmds {
		if len(c.requests) > 1 && SeveralSlots(c.err) {
			again = append(again, newCommands(c.requests, false)...)
		} else {
			done = append(done, c)
		}
	}
	q.send(ctx, again)
	return append(done, again...)
}

// deadline is a context with a deadline for code that asks for one, such as a
// dialer. It needs no timer, which context.WithDeadline needs for each batch.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

package distributed

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// command is one run of a script. It must never be sent twice: the first run
// may have charged although its reply was lost. go-redis repeats failed
// commands three times by default, unless the command forbids it.
type command struct {
	*redis.IntSliceCmd
	script   *script
	requests []*request
}

// NoRetry forbids go-redis to repeat the command. It still follows a cluster's
// redirections, which come instead of an execution.
func (*command) NoRetry() bool { return true }

// Clone keeps NoRetry.
func (c *command) Clone() redis.Cmder {
	clone := *c
	clone.IntSliceCmd = c.IntSliceCmd.Clone().(*redis.IntSliceCmd)
	return &clone
}

// wanted reports whether any request still needs the reply.
func (c *command) wanted() bool {
	return slices.ContainsFunc(c.requests, func(r *request) bool { return r.oneWay || r.state.Load() == pending })
}

// complete gives every request its part of the reply, and returns it to its
// caller.
func (c *command) complete(sent time.Time) {
	c.deliver()
	for _, r := range c.requests {
		r.sent = sent
		r.complete()
	}
}

// deliver gives every request its part of the reply.
func (c *command) deliver() {
	reply, err := c.Result()
	want := 1
	for _, r := range c.requests {
		want += len(r.reply)
	}
	if err == nil && len(reply) != want {
		err = errReply
	}
	at := 1
	for _, r := range c.requests {
		if r.err = err; err == nil {
			r.now = reply[0]
			at += copy(r.reply, reply[at:])
		}
	}
}

// newCommand packs requests of one script into EVALSHA, or into EVAL with the
// script's source for a server that has lost it.
func newCommand(ctx context.Context, s *script, requests []*request, withSource bool) *command {
	words := 3
	keys := 0
	for _, r := range requests {
		words += len(r.keys) + len(r.args)
		keys += len(r.keys)
	}
	args := make([]any, 0, words)
	if withSource {
		args = append(args, "eval", s.source, keys)
	} else {
		args = append(args, "evalsha", s.sha, keys)
	}
	for _, r := range requests {
		for _, k := range r.keys {
			args = append(args, k)
		}
	}
	for _, r := range requests {
		for i := range r.args {
			args = append(args, &r.args[i]) // a pointer needs no allocation
		}
	}
	cmd := redis.NewIntSliceCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return &command{cmd, s, requests}
}

// newCommands makes as few commands as keep the order of the requests of each
// script: one for each script where the node accepts keys of several slots,
// else one for each request.
func newCommands(ctx context.Context, requests []*request, manySlots bool) (cmds []*command) {
	for len(requests) > 0 {
		n := 1
		if manySlots {
			n = gather(requests, requests[0].script)
		}
		cmds = append(cmds, newCommand(ctx, requests[0].script, requests[:n], false))
		requests = requests[n:]
	}
	return cmds
}

// gather moves the requests of script s to the front, in order, and returns
// their number.
func gather(requests []*request, s *script) (n int) {
	var others []*request
	for _, r := range requests {
		if r.script == s {
			requests[n] = r
			n++
		} else {
			others = append(others, r)
		}
	}
	copy(requests[n:], others)
	return n
}

// send runs the commands and leaves each result in its command. A command that
// was certainly not executed is sent once more if its reply is still wanted;
// no other command is.
func send(ctx context.Context, client redis.UniversalClient, cmds []*command) {
	process(ctx, client, cmds)
	var again []*command
	for i, c := range cmds {
		if !c.wanted() {
			continue
		}
		if f := classify(c.Err()); f == noScript || f == notExecuted || passing(c.Err()) {
			cmds[i] = newCommand(ctx, c.script, c.requests, f == noScript)
			again = append(again, cmds[i])
		}
	}
	if len(again) > 0 && ctx.Err() == nil {
		process(ctx, client, again)
	}
}

func process(ctx context.Context, client redis.UniversalClient, cmds []*command) {
	if len(cmds) == 1 {
		_ = client.Process(ctx, cmds[0])
		return
	}
	pipe := client.Pipeline()
	for _, c := range cmds {
		_ = pipe.Process(ctx, c)
	}
	_, _ = pipe.Exec(ctx)
}

// resendBySlot sends request by request the commands that a node rejects
// because their keys are in several slots, and remembers that it does. A
// rejected command has not been executed.
func (q *nodeQueue) resendBySlot(ctx context.Context, cmds []*command) []*command {
	var done, again []*command
	for _, c := range cmds {
		if severalSlots(c.Err()) {
			q.store.router.noteCluster()
		}
		if len(c.requests) > 1 && classify(c.Err()) == keyFault {
			again = append(again, newCommands(ctx, c.requests, false)...)
		} else {
			done = append(done, c)
		}
	}
	if again == nil {
		return cmds
	}
	q.singleSlot.Store(true)
	send(ctx, q.store.client, again)
	return append(done, again...)
}

// deadline is a context with a deadline for code that asks for one, such as a
// dialer. It needs no timer, which context.WithDeadline needs for each batch.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

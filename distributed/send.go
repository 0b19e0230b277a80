package distributed

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// command is one run of a script. It must never be sent twice: the first
// sending may have charged although its reply was lost. go-redis repeats what
// fails, by default three times, unless the command says no.
type command struct {
	*redis.IntSliceCmd
	script  *script
	entries []*entry
}

// NoRetry tells go-redis not to repeat the command. It still follows a
// cluster's redirections, which come instead of an execution.
func (*command) NoRetry() bool { return true }

// Clone keeps the promise of NoRetry.
func (c *command) Clone() redis.Cmder {
	clone := *c
	clone.IntSliceCmd = c.IntSliceCmd.Clone().(*redis.IntSliceCmd)
	return &clone
}

// wanted reports whether anybody has use for the answer.
func (c *command) wanted() bool {
	return slices.ContainsFunc(c.entries, func(e *entry) bool { return e.alone || e.state.Load() == waiting })
}

// newCommand packs entries of one script into EVALSHA, or into EVAL with the
// script itself for a server that does not know it.
func newCommand(ctx context.Context, s *script, entries []*entry, verbatim bool) *command {
	words := 3
	keys := 0
	for _, e := range entries {
		words += len(e.keys) + len(e.args)
		keys += len(e.keys)
	}
	args := make([]any, 0, words)
	if verbatim {
		args = append(args, "eval", s.source, keys)
	} else {
		args = append(args, "evalsha", s.sha, keys)
	}
	for _, e := range entries {
		for _, k := range e.keys {
			args = append(args, k)
		}
	}
	for _, e := range entries {
		for i := range e.args {
			args = append(args, &e.args[i]) // a pointer needs no allocation
		}
	}
	cmd := redis.NewIntSliceCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return &command{cmd, s, entries}
}

// pack makes as few commands as keep the order of the entries of each script:
// one for each script where the node takes scripts with keys of several slots,
// else one for each entry.
func pack(ctx context.Context, entries []*entry, manyKeys bool) (cmds []*command) {
	for len(entries) > 0 {
		n := 1
		if s := entries[0].script; manyKeys && s != togetherScript {
			n = gather(entries, s)
		}
		cmds = append(cmds, newCommand(ctx, entries[0].script, entries[:n], false))
		entries = entries[n:]
	}
	return cmds
}

// gather moves the entries of script s to the front, in order, and returns how
// many there are.
func gather(entries []*entry, s *script) (n int) {
	var others []*entry
	for _, e := range entries {
		if e.script == s {
			entries[n] = e
			n++
		} else {
			others = append(others, e)
		}
	}
	copy(entries[n:], others)
	return n
}

// send runs the commands and leaves each one's result in it. What was
// certainly not executed is sent once more, if somebody still waits for it;
// nothing else is.
func send(ctx context.Context, client redis.UniversalClient, cmds []*command) {
	process(ctx, client, cmds)
	var again []*command
	for i, c := range cmds {
		if !c.wanted() {
			continue
		}
		switch classify(c.Err()) {
		case noScript:
			cmds[i] = newCommand(ctx, c.script, c.entries, true)
			again = append(again, cmds[i])
		case unsent:
			cmds[i] = newCommand(ctx, c.script, c.entries, false)
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

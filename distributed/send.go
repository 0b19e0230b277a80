package distributed

import (
	"context"

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
// one for each script where the node takes scripts with many keys, else one
// for each entry.
func pack(ctx context.Context, entries []*entry, manyKeys bool) []*command {
	var cmds []*command
	if !manyKeys {
		for i, e := range entries {
			cmds = append(cmds, newCommand(ctx, e.script, entries[i:i+1], false))
		}
		return cmds
	}
	for len(entries) > 0 {
		s := entries[0].script
		var same, rest []*entry
		if uniform(entries) {
			same = entries
		} else {
			for _, e := range entries {
				if e.script == s {
					same = append(same, e)
				} else {
					rest = append(rest, e)
				}
			}
		}
		cmds = append(cmds, newCommand(ctx, s, same, false))
		entries = rest
	}
	return cmds
}

func uniform(entries []*entry) bool {
	for _, e := range entries[1:] {
		if e.script != entries[0].script {
			return false
		}
	}
	return true
}

// send runs the commands and leaves each one's result in it. What was
// certainly not executed is sent once more; nothing else is.
func send(ctx context.Context, client redis.UniversalClient, cmds []*command) {
	process(ctx, client, cmds)
	var again []*command
	for i, c := range cmds {
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

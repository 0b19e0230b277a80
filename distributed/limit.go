package distributed

import (
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// limit is an algorithm with its parameters, which never change: SetRate
// replaces them. It writes the script's arguments and reads its replies. The methods that
// return arguments send nothing.
type limit interface {
	script() *remote.Script
	// acquireArgs: do n >= 0 units fit?
	acquireArgs(key string, n int64) remote.Args
	// explain turns the answer for n units into a decision, and into the handle
	// of their charge.
	explain(a remote.Answer, n int64) (algo.Decision, algo.Handle)
	// refundArgs: give back n of the h.N units that were charged.
	refundArgs(h algo.Handle, n int64) remote.Args
	// forceArgs: charge n units more to h, whether they fit or not.
	forceArgs(key string, h algo.Handle, n int64) remote.Args
	// resetArgs: forget a key's debt.
	resetArgs(key string) remote.Args
	// local returns the limiter of this instance's share: was, changed in use, or
	// a new one; nil if there is no share.
	local(of instances, was algo.Limiter) algo.Limiter
	// maxCost is the largest cost that can ever be admitted.
	maxCost() int64
	describe() algo.Description
}

// The traits of some limits; see also leaser.
type (
	// batcher is decided with others in one step of its script.
	batcher interface {
		limit
		batches()
	}
	// prover denies by what only time, a refund, a reset or a change takes away: explain repeats
	// the decision of Redis from an old reply, until the RetryAfter of a denial.
	prover interface{ proves() }
	// giver gives back units of whatever charge.
	giver interface {
		giveBackArgs(key string, n int64) remote.Args
	}
	// holder keeps each unit under the id of its charge, so a charge may be undone twice, and
	// without a reply.
	holder interface{ holds() }
)

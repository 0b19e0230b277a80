package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// ask is one question to the limiter: about a call or a message of a stream.
type ask struct {
	method, key string
	n           int64
	patience    time.Duration // how long to wait for what does not fit yet
	opening     bool          // of a call, or of a stream: an admission may have trailers
	start       time.Time     // for an observer only
}

// errNegative refuses a cost that would mint.
var errNegative = fmt.Errorf("grpcmw: the cost function gave a negative cost: %w", algo.ErrCost)

// admit decides on a call. With a nil error the call may start: lease is
// acquired, or left zero where nothing limits the call. Otherwise nothing
// stays charged, and the error is what to answer: a *denial, or a status if
// the context has ended.
func (g *gate) admit(ctx context.Context, lease *algo.Lease, method string, msg any) error {
	key, v, err := g.identify(ctx, method)
	if err != nil || v != charge {
		return g.unasked(ctx, method, v, err)
	}
	return g.charge(ctx, lease, &ask{
		method: method, key: key, n: g.weigh(ctx, method, msg), patience: g.maxWait, opening: true,
	})
}

// unasked decides on a call without a key.
func (g *gate) unasked(ctx context.Context, method string, v verdict, err error) error {
	a := &ask{method: method}
	switch {
	case err != nil:
		return g.undecided(ctx, a, err)
	case v == pass:
		return nil
	}
	r := reply{code: codes.ResourceExhausted, text: textKeyless, class: classMissing, wait: algo.Forever}
	return g.deny(ctx, a, &algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever}, r)
}

func (g *gate) weigh(ctx context.Context, method string, msg any) int64 {
	if g.cost == nil {
		return 1
	}
	return g.cost(ctx, method, msg)
}

// charge asks the limiter, and waits as long as the ask has patience.
func (g *gate) charge(ctx context.Context, lease *algo.Lease, a *ask) (err error) {
	if a.n < 0 {
		return g.undecided(ctx, a, errNegative)
	}
	if g.observer != nil {
		a.start = time.Now()
	}
	*lease, err = g.limiter.Acquire(ctx, a.key, a.n)
	for err == nil && !lease.Allowed && a.patience > 0 && lease.Reason == algo.Quota {
		wait := waitFor(&lease.Decision)
		if wait > a.patience {
			break
		}
		if err := algo.Sleep(ctx, wait); err != nil {
			return g.tooLate(ctx, a, &lease.Decision, err)
		}
		a.patience -= wait
		*lease, err = g.limiter.Acquire(ctx, a.key, a.n)
	}
	if err == nil && lease.Allowed && lease.Delay <= 0 && !g.attentive {
		return nil
	}
	return g.conclude(ctx, lease, a, err)
}

// conclude is for everything but the plain admission.
func (g *gate) conclude(ctx context.Context, lease *algo.Lease, a *ask, err error) error {
	d := &lease.Decision
	switch {
	case err != nil:
		return g.undecided(ctx, a, err)
	case !d.Allowed:
		return g.deny(ctx, a, d, replyTo(d, a.key))
	case g.refusesRetry(ctx, d):
		lease.Release(algo.Canceled)
		return g.deny(ctx, a, d, reply{code: codes.Unavailable, text: textOverload, wait: algo.Forever})
	}
	if err := algo.Sleep(ctx, d.Delay); err != nil {
		lease.Release(algo.Canceled)
		return g.tooLate(ctx, a, d, err)
	}
	if g.observer != nil {
		g.report(a, d, Allowed, codes.OK, g.trailed(a, d), nil)
	}
	return nil
}

// tooLate answers when a wait cannot be slept out: because the caller's time
// would end first, which is a denial, or because the caller went away.
func (g *gate) tooLate(ctx context.Context, a *ask, d *algo.Decision, err error) error {
	if !errors.Is(err, algo.ErrWait) {
		return g.gone(ctx, a, d)
	}
	wait := max(d.Delay, d.RetryAfter)
	return g.deny(ctx, a, d, reply{code: codes.ResourceExhausted, text: textTooLate, class: classOf(a.key), wait: wait})
}

// gone answers a call whose context has ended.
func (g *gate) gone(ctx context.Context, a *ask, d *algo.Decision) error {
	st := status.FromContextError(ctx.Err())
	g.report(a, d, Canceled, st.Code(), telemetry.Sent{}, ctx.Err())
	return st.Err()
}

// undecided answers when the limiter or the key function failed. Their errors
// may contain what the client sent, so they stop here. FailOpen is not for what
// clients can provoke: absurd costs, and deadlines too short for the limiter.
func (g *gate) undecided(ctx context.Context, a *ask, err error) error {
	badCost := errors.Is(err, algo.ErrCost)
	if ctx.Err() != nil && !badCost {
		return g.gone(ctx, a, &algo.Decision{})
	}
	logFailure(g.name, err)
	if g.onError == FailOpen && !badCost && !errors.Is(err, algo.ErrWait) {
		g.report(a, &algo.Decision{}, FailedOpen, codes.OK, telemetry.Sent{}, err)
		return nil
	}
	r := reply{code: codes.Unavailable, text: textOverload, wait: unstated}
	if badCost {
		r.wait = algo.Forever // the same call costs the same again
	}
	sent, refused := g.refusal(ctx, r)
	g.report(a, &algo.Decision{}, FailedClosed, r.code, sent, err)
	return refused
}

// deny reports and answers a denial.
func (g *gate) deny(ctx context.Context, a *ask, d *algo.Decision, r reply) error {
	sent, refused := g.refusal(ctx, r)
	g.report(a, d, Denied, r.code, sent, nil)
	return refused
}

// refusal encodes a reply for the caller of ctx, and tells what of it is sent.
// On a client it is a plain status: a handler that returns it is not denied by
// a limiter of its server.
func (g *gate) refusal(ctx context.Context, r reply) (sent telemetry.Sent, refused error) {
	chance := random()
	wait := jittered(r.wait, algo.Forever, chance)
	st := g.answers.status(r, wait)
	if g.client {
		return sent, st.Err()
	}
	d := &denial{status: st, pushback: pushback(r.wait, left(ctx), chance)}
	if r.wait != algo.Forever {
		sent.RetryAfter = wait
	}
	if !g.tapping {
		sent.Pushback = d.pushback
	}
	return sent, d
}

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/internal/serverwait"
	"github.com/sluice-go/sluice/keyfunc"
)

// pacer is one limit with its options. It does not change once it is made.
type pacer struct {
	limiter    algo.Limiter
	key        keyfunc.RPC
	name       string
	cost       grpcmw.Cost
	skip       func(ctx context.Context, fullMethod string) bool
	failOpen   bool
	observe    func(telemetry.Event)
	serverWait func(header, trailer metadata.MD) time.Duration
	waits      *serverwait.Waits
	learns     bool // an answer teaches a limit
}

// call is a call that is sent.
type call struct {
	place serverwait.Place
	sent  time.Time
	units int64
}

func newPacer(constructor string, l algo.Limiter, key keyfunc.RPC, opts []Option) *pacer {
	must(l != nil, constructor+": the limiter is nil")
	must(key != nil, constructor+": the key function is nil; rpckey.Global gives all calls one limit")
	p := &pacer{limiter: l, key: key, name: algo.About(l).String(), waits: serverwait.New(serverwait.Places), learns: len(learn.In(l)) > 0}
	for _, o := range opts {
		o(p)
	}
	return p
}

// admit waits until the call may be sent, reports the decision, and makes the status of a
// call that may not. The lease of a call that passes unlimited stays zero.
func (p *pacer) admit(ctx context.Context, cc *grpc.ClientConn, method string, msg any, lease *algo.Lease) (c call, err error) {
	var place serverwait.Place
	e := telemetry.Event{Context: ctx, Transport: telemetry.GRPC, Client: true, Policy: p.name, Method: method, Cost: 1}
	if p.observe != nil {
		e.At = time.Now()
	}
	if cc != nil { // interceptors may be called without one
		place.Host = cc.Target()
	}
	if place.Key, e.Err = p.key(ctx, method); e.Err == nil {
		e.Err = p.acquire(&e, msg, place, lease)
	} else {
		place.Key = ""
	}
	if e.Result = p.classify(ctx, e.Err); e.Result == telemetry.FailedOpen {
		if waited := p.waits.Await(ctx, place, algo.Sleep); waited != nil {
			e.Err, e.Result = waited, p.classify(ctx, waited)
		}
	}
	if e.Result != telemetry.Allowed && e.Result != telemetry.FailedOpen {
		st := p.refuse(&e, place, &lease.Decision)
		err, e.Status = st.Err(), int(st.Code())
	}
	if p.observe != nil {
		start := e.At
		e.At, e.Decision, e.KeyHash = time.Now(), lease.Decision, keyfunc.Hash(place.Key)
		e.Waited = e.At.Sub(start)
		p.observe(e)
	}
	return call{place, time.Now(), e.Cost}, err
}

// acquire waits until the server accepts the call and the limiter admits it. A
// server that asks to wait meanwhile makes the admission void: calls that kept theirs
// would start together.
func (p *pacer) acquire(e *telemetry.Event, msg any, place serverwait.Place, lease *algo.Lease) error {
	if p.cost != nil {
		if e.Cost = p.cost(e.Context, e.Method, msg); e.Cost < 0 {
			return fmt.Errorf("%w: the cost function returned %d", algo.ErrCost, e.Cost)
		}
	}
	for {
		err := p.waits.Await(e.Context, place, algo.Sleep)
		if err != nil {
			lease.Decision = algo.Decision{Reason: algo.Quota, RetryAfter: p.waits.Left(place)}
			return err
		}
		if *lease, err = algo.Wait(e.Context, p.limiter, place.Key, e.Cost); err != nil || p.waits.Left(place) <= 0 {
			return err
		}
		lease.Release(algo.Canceled)
	}
}

// classify is the fate of a call with that error.
func (p *pacer) classify(ctx context.Context, err error) telemetry.Result {
	switch {
	case err == nil:
		return telemetry.Allowed
	case errors.Is(ctx.Err(), context.Canceled):
		return telemetry.Canceled
	case ctx.Err() != nil || errors.Is(err, algo.ErrWait) || errors.Is(err, algo.ErrCost):
		return telemetry.Denied
	case p.failOpen:
		return telemetry.FailedOpen
	}
	return telemetry.FailedClosed
}

// refuse is the status of a call that is not sent: that of a server's denial, with a text of its
// own. A handler that returns it is not denied by a limit of its server.
func (p *pacer) refuse(e *telemetry.Event, place serverwait.Place, d *algo.Decision) *status.Status {
	if err := e.Context.Err(); err != nil {
		return status.FromContextError(err)
	}
	denial := status.Convert(denialError(p.name, place.Key, *d))
	st := denial.Proto()
	if e.Result == telemetry.Denied && d.Limit == 0 && denial.Code() == codes.ResourceExhausted {
		st.Message = "the server asked to wait for longer than the call can"
	}
	st.Message = clientSide + st.Message
	return status.FromProto(st)
}

// denialError is the error of a server for the denial d, without the context of the call, in
// which it would leave the pushback of a server that makes the call.
func denialError(name, key string, d algo.Decision) error {
	return grpcmw.DenialError(context.Background(), algo.Unlimited(), key, d, grpcmw.WithName(name))
}

// clientSide begins the texts of a client's own limits.
const clientSide = "client side: "

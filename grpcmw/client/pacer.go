package client

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/internal/option"
	"github.com/sluice-go/sluice/internal/pacing"
	"github.com/sluice-go/sluice/internal/serverwait"
	"github.com/sluice-go/sluice/keyfunc"
)

// pacer is one limit with its options. It is immutable.
type pacer struct {
	pacing.Pacer
	key        keyfunc.RPC
	cost       grpcmw.Cost
	skip       func(ctx context.Context, fullMethod string) bool
	serverWait func(header, trailer metadata.MD) time.Duration
}

func newPacer(constructor string, l algo.Limiter, key keyfunc.RPC, opts []Option) *pacer {
	must(l != nil, constructor+": the limiter is nil")
	must(key != nil, constructor+": the key function is nil; rpckey.Global gives all calls one limit")
	p := &pacer{Pacer: pacing.New(l), key: key}
	if err := option.Apply(p, opts, Option.split, nil); err != nil {
		panic("client: " + constructor + ": " + err.Error())
	}
	return p
}

// admit waits until the call may be sent.
func (p *pacer) admit(ctx context.Context, cc *grpc.ClientConn, method string, msg any, lease *algo.Lease) (pacing.Call, error) {
	var place serverwait.Place
	e := telemetry.Event{Context: ctx, Transport: telemetry.GRPC, Method: method, Cost: 1}
	if cc != nil { // interceptors may be called without one
		place.Host = cc.Target()
	}
	if place.Key, e.Err = p.key(ctx, method); e.Err != nil {
		place.Key = ""
	} else if p.cost != nil {
		if e.Cost = p.cost(ctx, method, msg); e.Cost < 0 {
			e.Err = fmt.Errorf("%w: the cost function returned %d", algo.ErrCost, e.Cost)
		}
	}
	return p.Admit(e, place, lease, func(e telemetry.Event) (int, error) {
		st := p.refuse(&e, place.Key)
		return int(st.Code()), st.Err()
	})
}

// refuse returns the status of a call that is not sent: a server's denial with another text. A
// server does not take it for the denial of its own limit.
func (p *pacer) refuse(e *telemetry.Event, key string) *status.Status {
	if err := e.Context.Err(); err != nil {
		return status.FromContextError(err)
	}
	denial := status.Convert(denialError(p.Name, key, e.Decision))
	st := denial.Proto()
	if e.Result == telemetry.Denied && e.Decision.Limit == 0 && denial.Code() == codes.ResourceExhausted {
		st.Message = "the server asked to wait for longer than the call can"
	}
	st.Message = clientSide + st.Message
	return status.FromProto(st)
}

// denialError returns a server's error for the denial d. It does not use the context of the call,
// in which it would leave the pushback of a server that makes the call.
func denialError(name, key string, d algo.Decision) error {
	d.Allowed = false // even if something failed after it
	return grpcmw.DenialError(context.Background(), algo.Unlimited(), key, d, grpcmw.WithName(name))
}

// clientSide is the prefix of the texts of a client's own limits.
const clientSide = "client side: "

package grpcmw

import (
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// ServerOptions returns the options that limit all unary calls and streams of a
// server with one limiter:
//
//	srv := grpc.NewServer(grpcmw.ServerOptions(perClient, rpckey.PeerIP())...)
//
// The interceptors run in the order of the options of grpc.NewServer. Put recovery
// from panics, authentication that the key depends on, and logging before them. Of
// several limits, the outer ones keep the charge of a call that an inner one denies;
// [Limits] charges all or none.
//
// ServerOptions takes every option for servers. It panics if l or key is nil,
// and if an option does not fit.
func ServerOptions(l algo.Limiter, key keyfunc.RPC, opts ...Option) []grpc.ServerOption {
	return newInterceptor("ServerOptions", forStreams, l, key, opts).serverOptions()
}

// Policy is one of several limits on the same calls; see [Limits] and [NewPlans].
type Policy struct {
	// Name is the name in the details of a denial: letters, digits, dots, underscores
	// and hyphens. The default describes the limit.
	Name string
	// Limiter decides. Required.
	Limiter algo.Limiter
	// Key returns the key of a call. Required.
	Key keyfunc.RPC
	// Cost returns the cost of a call, as for [WithCost]; nil: the function of
	// WithCost, otherwise 1.
	Cost Cost
}

// Limits is [ServerOptions] for several policies in one decision: it charges a call
// to all of them or to none, see [algo.AcquireAll]. A denial names the policies that
// had no room, and its delay suffices for all of them.
//
// Limits leaves out a policy whose key is missing under [Skip], or whose key function
// fails under [WithFailOpen]; the others still hold. If a limiter fails, nothing is
// decided. Put the policy that denies most often first, and one that may wait last.
//
// Limits panics as ServerOptions does, if ps is empty, and if two policies have
// the same name. It takes the options of ServerOptions except WithName.
func Limits(ps []Policy, opts ...Option) []grpc.ServerOption {
	i := makeInterceptor(configure("Limits", forSeveral, opts))
	var err error
	if i.fixed, err = i.makePolicies("", ps); err != nil {
		adapter.Misuse("Limits", err.Error())
	}
	return i.serverOptions()
}

// serverOptions returns the interceptors, for unary calls and streams.
func (i *interceptor) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(i.unary), grpc.ChainStreamInterceptor(i.stream)}
}

// makePolicies makes the policies of one decision from ps; see admission.MakePolicies.
func (i *interceptor) makePolicies(standard string, ps []Policy) (*policies, error) {
	limits := make([]admission.Limit[call], len(ps))
	for k, p := range ps {
		limits[k] = admission.Limit[call]{Name: p.Name, Limiter: p.Limiter, Key: ofCall(p.Key), Cost: p.Cost.ofCall()}
	}
	decide, err := admission.MakePolicies(adapter, &i.Settings, limits, standard)
	if err != nil {
		return nil, err
	}
	return i.newPolicies(decide), nil
}

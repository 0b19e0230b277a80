package main

import (
	"context"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/programs/rls/service"
)

// overLimit puts the overload protection around the service. What it denies is
// answered with OVER_LIMIT and not with an error: by default Envoy lets a
// request pass when its call to the rate limit service fails, so an error would
// lift all limits at the moment of the highest load. Health checks are never
// denied.
func overLimit(l *adaptive.Limiter, observe telemetry.Observer) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		r, ok := req.(*rls.RateLimitRequest)
		if !ok {
			return handler(ctx, req)
		}
		start := time.Now()
		lease, err := l.Acquire(ctx, "", 1)
		if err != nil { // closed, at the end of the process
			return handler(ctx, req)
		}
		e := telemetry.Event{
			At: time.Now(), Transport: telemetry.GRPC, Method: info.FullMethod,
			Policy: "overload", Decision: lease.Decision, Cost: 1,
		}
		e.Waited = e.At.Sub(start)
		if !lease.Allowed {
			e.Result, e.Status = telemetry.Denied, int(codes.ResourceExhausted)
			observe(e)
			return service.DenyAll(r), nil
		}
		observe(e)
		outcome := algo.Failed // unless the handler returns
		defer func() { lease.Release(outcome) }()
		resp, err := handler(ctx, req)
		if err == nil {
			outcome = algo.Succeeded
		}
		return resp, err
	}
}

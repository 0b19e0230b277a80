package client

import (
	"context"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/internal/option"
)

// Option adjusts an interceptor when it is made. A value out of range is a panic that names the
// option.
type Option struct {
	name  string
	apply func(*pacer) error
}

func (o Option) split() (string, func(*pacer) error) { return o.name, o.apply }

// WithName sets the name of the limit in statuses and events: 1 to 64 letters, digits, dots,
// underscores and hyphens. The default describes the limit.
func WithName(name string) Option {
	_ = denialError(name, "", algo.Decision{}) // panics
	return Option{"WithName", option.Sets(func(p *pacer) { p.Name = name })}
}

// WithCost sets the cost of a call; the default is 1. For a stream cost gets nil as the message.
// A negative cost fails with UNAVAILABLE.
func WithCost(cost grpcmw.Cost) Option {
	return Option{"WithCost", func(p *pacer) error {
		p.cost = cost
		return option.NotNil(cost != nil)
	}}
}

// WithSkip sends calls for which skip is true at once: unlimited, and without the wait that the
// server has asked for. The default is none.
func WithSkip(skip func(ctx context.Context, fullMethod string) bool) Option {
	return Option{"WithSkip", func(p *pacer) error {
		p.skip = skip
		return option.NotNil(skip != nil)
	}}
}

// WithFailOpen sends calls whose key or limiter fails unlimited, instead of failing them with
// UNAVAILABLE. Only events report the failures: see [WithObserver].
func WithFailOpen() Option {
	return Option{"WithFailOpen", option.Sets(func(p *pacer) { p.FailOpen = true })}
}

// WithObserver sets a function that receives every decision before the call is sent. Calls run
// observe concurrently on their goroutines, so it must be quick.
func WithObserver(observe func(telemetry.Event)) Option {
	return Option{"WithObserver", func(p *pacer) error {
		p.Observe = observe
		return option.NotNil(observe != nil)
	}}
}

// WithServerWait sets a function that reads the server's requested wait from the
// metadata of an answer; 0 means none. If the pushback or the details of the answer
// have a wait too, the longer one counts. The default is none;
// [QuotaWait] reads the fields of many services.
func WithServerWait(wait func(header, trailer metadata.MD) time.Duration) Option {
	return Option{"WithServerWait", func(p *pacer) error {
		p.serverWait = wait
		return option.NotNil(wait != nil)
	}}
}

// must panics unless ok: a client that is wired wrongly must not start.
func must(ok bool, what string) {
	if !ok {
		panic("client: " + what)
	}
}

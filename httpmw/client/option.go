package client

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/option"
	"github.com/sluice-go/sluice/internal/serverwait"
)

// Option adjusts a [Transport]. A value out of range is a panic that names the option.
type Option struct {
	name  string
	apply func(*transport) error
}

func (o Option) split() (string, func(*transport) error) { return o.name, o.apply }

// WithName sets the name of the limit in errors and events. The default describes the limit.
func WithName(name string) Option {
	return Option{"WithName", option.Sets(func(t *transport) { t.Name = name })}
}

// WithCost sets the cost of a request in units; the default is 1. A negative cost fails with an
// error that wraps [algo.ErrCost]. cost must not read the body.
func WithCost(cost func(*http.Request) int64) Option {
	return Option{"WithCost", func(t *transport) error {
		t.cost = cost
		return option.NotNil(cost != nil)
	}}
}

// WithSkip sends requests for which skip is true at once: unlimited, and without the wait that the
// server has asked for. The default is none.
func WithSkip(skip func(*http.Request) bool) Option {
	return Option{"WithSkip", func(t *transport) error {
		t.skip = skip
		return option.NotNil(skip != nil)
	}}
}

// WithRefundIf refunds the charge of a request if refund is true for the status of its answer.
// The default is never.
func WithRefundIf(refund func(status int) bool) Option {
	return Option{"WithRefundIf", func(t *transport) error {
		t.refundIf = refund
		return option.NotNil(refund != nil)
	}}
}

// WithFailOpen sends requests whose key or limiter fails unlimited, instead of returning the
// error. Only events report the failures: see [WithObserver].
func WithFailOpen() Option {
	return Option{"WithFailOpen", option.Sets(func(t *transport) { t.FailOpen = true })}
}

// WithObserver sets a function that receives every decision before the request is sent. Requests run
// observe concurrently on their goroutines, so it must be quick.
func WithObserver(observe func(telemetry.Event)) Option {
	return Option{"WithObserver", func(t *transport) error {
		t.Observe = observe
		return option.NotNil(observe != nil)
	}}
}

// WithMaxServers sets for how many pairs of host and key a transport remembers the
// wait that the server asked for, 1 or more; the default is 1024. Beyond that it
// forgets the pair whose wait ends first.
func WithMaxServers(n int) Option {
	return Option{"WithMaxServers", func(t *transport) error {
		if n < 1 {
			return fmt.Errorf("is %d, want 1 or more", n)
		}
		t.Waits = serverwait.New(n)
		return nil
	}}
}

// WithServerWait sets a function that returns the wait that an answer asks for; 0 means
// none. If the fields that a [Transport] reads itself ask for a longer wait, that counts.
// wait must not read the body. The default is none; [QuotaWait] reads the fields of many
// services.
func WithServerWait(wait func(*http.Response) time.Duration) Option {
	return Option{"WithServerWait", func(t *transport) error {
		t.serverWait = wait
		return option.NotNil(wait != nil)
	}}
}

// must panics unless ok: a service that is wired wrongly must not start.
func must(ok bool, what string) {
	if !ok {
		panic("client: " + what)
	}
}

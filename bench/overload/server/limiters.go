package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/bench/peers"
	"github.com/sluice-go/sluice/httpmw"
)

// ours makes a limiter of this library.
func ours(name string) (algo.Limiter, error) {
	switch name {
	case "default":
		return adaptive.New(adaptive.Default(), options()...)
	case "runqueue":
		return adaptive.New(adaptive.RunQueue(), options()...)
	case "bbr":
		return adaptive.New(strategy.BBR(), options()...)
	case "rejects":
		return rejects{}, nil
	}
	return nil, fmt.Errorf("the limiter is %q, want none, default, runqueue, bbr, rejects, aegis, failsafe or gozero", name)
}

// middleware limits a handler by the limiter of that name.
func middleware(name string) (func(http.Handler) http.Handler, algo.Limiter, error) {
	switch name {
	case "none":
		return func(h http.Handler) http.Handler { return h }, nil, nil
	case "aegis":
		return peers.Aegis().Wrap, nil, nil
	case "failsafe":
		return peers.Failsafe(0).Wrap, nil, nil
	case "gozero":
		return peers.GoZero().Wrap, nil, nil
	}
	l, err := ours(name)
	if err != nil {
		return nil, nil, err
	}
	return httpmw.Limit(l, httpTenant), l, nil
}

// rejects denies everything, to measure the cost of a rejection.
type rejects struct{}

func (rejects) Acquire(context.Context, string, int64) (algo.Lease, error) {
	var l algo.Lease
	l.Reason, l.RetryAfter = algo.Overload, 1
	return l, nil
}

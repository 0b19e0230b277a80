package service

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/live"
	"github.com/sluice-go/sluice/programs/gateway/ops"
)

// Options are the settings of a service beside its file.
type Options struct {
	Store   *distributed.Store // nil: limits are kept in this process
	Observe telemetry.Observer // may be nil
	Log     *slog.Logger
	// Wrap, if not nil, puts something around each limiter of the file.
	Wrap func(id string, l algo.Limiter) algo.Limiter
	// Changed, if not nil, receives the limits in force by their names
	// whenever they may have changed. An error is logged.
	Changed func(limits map[string]ops.Limit) error
}

// Service is a rls.RateLimitServiceServer.
type Service struct {
	rls.UnimplementedRateLimitServiceServer
	opts      Options
	limiters  *reload.Limits
	overrides *overrides
	unmatched unmatched
	current   atomic.Pointer[tree]

	mu   sync.Mutex // one change at a time
	file *config.File
}

// New makes a service and puts f in force.
func New(f *config.File, opts Options) (*Service, error) {
	s := &Service{opts: opts, limiters: live.NewLimiters(opts.Store, opts.Wrap), overrides: newOverrides(opts.Store)}
	if err := s.Apply(f); err != nil {
		return nil, err
	}
	return s, nil
}

// Apply puts f in force. Limits that stay where they are in their domain keep
// their debt. An error changes nothing.
func (s *Service) Apply(f *config.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(f.Domains) == 0 {
		return f.Errorf("domains", "is missing, and a rate limit service without domains limits nothing")
	}
	if s.file != nil {
		if err := f.Restart(s.file); err != nil {
			return err
		}
		if f.Overload != s.file.Overload {
			return f.Errorf("overload", "has changed, which takes a restart")
		}
	}
	var limiters map[string]algo.Limiter
	var t tree
	changes, err := s.limiters.Apply(wanted(f), func(all map[string]algo.Limiter) error {
		limiters, t = all, newTree(f, all)
		return nil
	})
	if err != nil {
		return f.Errorf("", "%v", err)
	}
	s.current.Store(&t)
	s.file = f
	s.unmatched.forget()
	s.announce(limiters)
	f.LogWarnings(s.opts.Log)
	s.opts.Log.Info("configuration loaded", "file", f.Path, "hash", f.Hash, "domains", len(f.Domains),
		"kept", changes.Kept, "adjusted", changes.Adjusted, "added", changes.Added,
		"removed", changes.Removed, "begun_anew", changes.Replaced, "changed", named(f, changes.Changed))
	return nil
}

// announce calls Changed. Of several limits under one name it shows one.
func (s *Service) announce(limiters map[string]algo.Limiter) {
	if s.opts.Changed == nil {
		return
	}
	if err := s.opts.Changed(shown(s.file, limiters)); err != nil {
		s.opts.Log.Error("operators do not see all limits", "error", err)
	}
}

// asked is what one descriptor asks for.
type asked struct {
	node    *node // nil: the file does not know it
	limit   *limit
	brought *override // the limit of the request itself, or nil
	key     string
	name    string // in metrics; empty: the limit's
	hits    int64  // units to be charged
	back    int64  // or to be given back
}

// mostDescriptors bounds the work for one request, which occupies Redis for all others:
// 1024 descriptors take it some milliseconds. More are over the limit, and no error, because
// Envoy lets a request pass when its call fails.
const mostDescriptors = 1024

// DenyAll is OVER_LIMIT for each descriptor of a request.
func DenyAll(r *rls.RateLimitRequest) *rls.RateLimitResponse {
	resp := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OVER_LIMIT}
	for range r.GetDescriptors() {
		resp.Statuses = append(resp.Statuses, &rls.RateLimitResponse_DescriptorStatus{Code: rls.RateLimitResponse_OVER_LIMIT})
	}
	return resp
}

// ShouldRateLimit decides. A request without a domain or descriptors, and one
// that asks for what the service cannot do, is InvalidArgument.
func (s *Service) ShouldRateLimit(ctx context.Context, r *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	if r.GetDomain() == "" {
		return nil, status.Error(codes.InvalidArgument, "domain is empty")
	}
	if len(r.GetDescriptors()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "descriptors is empty")
	}
	if len(r.GetDescriptors()) > mostDescriptors {
		return DenyAll(r), nil
	}
	d := (*s.current.Load())[r.GetDomain()]
	all := make([]asked, len(r.GetDescriptors()))
	defer s.overrides.done(all)
	var reqs []algo.Request
	for i, descriptor := range r.GetDescriptors() {
		a, err := s.ask(d, r, descriptor)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "descriptors[%d]: %v", i, err)
		}
		all[i] = a
		if a.unmatched() {
			s.unmatched.note(s.opts.Log, d, r.GetDomain(), descriptor)
		}
	}
	replace(all)
	for i := range all {
		if a := &all[i]; a.limit != nil {
			reqs = append(reqs, algo.Request{Limiter: a.limit.limiter, Key: a.key, N: a.hits})
		}
	}
	if err := refund(ctx, all); errors.Is(err, errors.ErrUnsupported) {
		return nil, s.failed(r, err)
	} else if err != nil { // the others are decided all the same: Envoy lets a failed call pass
		s.opts.Log.Error("not given back", "domain", r.GetDomain(), "error", err)
	}
	began := time.Now()
	decisions, err := decide(ctx, reqs)
	if err != nil {
		return nil, s.failed(r, err)
	}
	waited := time.Since(began)
	headers := config.Headers{IETF: true}
	if d != nil {
		headers = d.headers
	}
	resp := answer(all, decisions, headers)
	s.tell(all, decisions, resp.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT, waited)
	return resp, nil
}

// ask finds out which limit a descriptor has, if any. The limit in a request
// overrides the file, also in domains that the file does not know.
func (s *Service) ask(d *domain, r *rls.RateLimitRequest, descriptor *ratelimit.RateLimitDescriptor) (a asked, err error) {
	if descriptor.GetIsNegativeHits() {
		a.back = hits(r, descriptor)
	} else {
		a.hits = hits(r, descriptor)
	}
	if len(descriptor.GetEntries()) == 0 {
		return a, errors.New("entries is empty")
	}
	if d != nil {
		a.node, a.key = d.find(descriptor)
	}
	if a.node != nil {
		a.limit = a.node.limit
		if a.limit != nil && a.node.Detailed {
			a.name = detailed(a.limit, descriptor)
		}
	}
	if descriptor.GetLimit() != nil {
		// The same descriptor in two domains is two keys here, as the limiter
		// knows no domain.
		a.key = keyOfEntries([]entry{{key: r.GetDomain()}}) + keyOf(descriptor)
		if a.brought, err = s.overrides.get(descriptor.GetLimit()); err == nil {
			a.limit = &a.brought.limit
		}
	}
	return a, err
}

// hits is the cost of a descriptor: its own number, else the request's, else 1. A number
// that is too large counts as the largest, because Envoy lets a request pass when its call
// fails, and the number may come from the client.
func hits(r *rls.RateLimitRequest, d *ratelimit.RateLimitDescriptor) int64 {
	if own := d.GetHitsAddend(); own != nil {
		return int64(min(own.GetValue(), math.MaxUint32))
	}
	return max(1, int64(r.GetHitsAddend()))
}

// failed is the status of a request that cannot be decided.
func (s *Service) failed(r *rls.RateLimitRequest, err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	s.opts.Log.Error("not decided", "domain", r.GetDomain(), "error", err)
	return status.Error(codes.Unavailable, "the limits cannot be decided")
}

// decide charges all or none and returns each limit's own decision. A limit
// that admits with a delay has no room: no caller can wait.
func decide(ctx context.Context, reqs []algo.Request) ([]algo.Decision, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	lease, err := algo.AcquireAll(ctx, reqs...)
	if err != nil {
		return nil, err
	}
	parts := lease.Parts()
	if len(reqs) == 1 {
		parts = []algo.Decision{lease.Decision}
	}
	if lease.Allowed && lease.Delay > 0 {
		lease.Release(algo.Canceled)
		for i := range parts {
			p := &parts[i]
			if p.Delay > 0 {
				p.Allowed, p.Reason, p.RetryAfter, p.Delay = false, algo.Quota, p.Delay, 0
			} else {
				p.Remaining = min(p.Remaining+reqs[i].N, p.Limit)
			}
		}
		return parts, nil
	}
	lease.Release(algo.Succeeded)
	return parts, nil
}

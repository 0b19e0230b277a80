package service

import (
	"cmp"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/keyfunc"
)

// tell calls the observer as the adapters do: of an admission once for each
// limit, of a denial once for each that had no room.
func (s *Service) tell(all []asked, decisions []algo.Decision, denied bool, waited time.Duration) {
	if s.opts.Observe == nil {
		return
	}
	for i := range all {
		a := &all[i]
		if a.limit == nil {
			continue
		}
		d := decisions[0]
		decisions = decisions[1:]
		if denied && a.limit.quota && d.Trial != algo.Admitted {
			d.Allowed, d.Reason, d.Trial = false, d.Trial, algo.Admitted
		}
		if denied && d.Allowed {
			continue
		}
		e := telemetry.Event{
			Transport: telemetry.GRPC, Method: rls.RateLimitService_ShouldRateLimit_FullMethodName,
			Policy: cmp.Or(a.name, a.limit.name), Decision: d, Waited: waited, Cost: a.hits, KeyHash: keyfunc.Hash(a.key),
		}
		if denied {
			e.Result, e.Status = telemetry.Denied, int(codes.ResourceExhausted)
		}
		s.opts.Observe(e)
	}
}

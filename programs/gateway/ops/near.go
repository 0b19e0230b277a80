package ops

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-go/sluice/algo/telemetry"
)

// nearLimit counts requests that were admitted while more than four fifths of a limit
// were used, as envoyproxy/ratelimit's near_limit does: keys near a limit are visible
// before the first denial.
type nearLimit struct {
	total *prometheus.CounterVec

	mu       sync.Mutex
	policies map[string]prometheus.Counter
}

func newNearLimit() *nearLimit {
	return &nearLimit{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ratelimit_near_limit_total", Help: "Requests admitted with less than a fifth of the limit remaining.",
		}, []string{"ratelimit_policy"}),
		policies: map[string]prometheus.Counter{},
	}
}

// Observe is a telemetry.Observer.
func (n *nearLimit) Observe(e telemetry.Event) {
	d := &e.Decision
	if e.Result == telemetry.Allowed && d.Limit > 0 && d.Remaining < (d.Limit+4)/5 {
		n.of(e.Policy).Inc()
	}
}

// of is the counter of a policy. Those beyond mostPolicies share one.
func (n *nearLimit) of(policy string) prometheus.Counter {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, known := n.policies[policy]
	if !known {
		if len(n.policies) >= mostPolicies {
			return n.total.WithLabelValues("other")
		}
		c = n.total.WithLabelValues(policy)
		n.policies[policy] = c
	}
	return c
}

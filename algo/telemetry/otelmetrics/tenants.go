package otelmetrics

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/keyfunc"
)

// TenantLister is a limiter that knows its heaviest tenants: an adaptive.Limiter with
// WithFairShares.
type TenantLister interface {
	Tenants(n int) []adaptive.TenantUse
}

const (
	tenantKey   = attribute.Key("ratelimit.tenant")
	mostTenants = 32
)

// shared is a limiter whose tenants are observed.
type shared struct {
	name    string
	most    int
	limiter TenantLister
}

func (s *shared) observe(o metric.Observer, g *gauges) {
	for _, t := range s.limiter.Tenants(s.most) {
		set := metric.WithAttributeSet(attribute.NewSet(policyKey.String(s.name), tenantKey.String(label(t.Tenant))))
		o.ObserveFloat64(g.asked, t.Asked, set)
		o.ObserveFloat64(g.got, t.Admitted, set)
	}
}

// label is the key of a tenant, or its beginning and its hash if exporters may not accept it:
// two tenants never have the same label.
func label(tenant string) string {
	const longest = 64
	if len(tenant) <= longest && utf8.ValidString(tenant) {
		return tenant
	}
	return fmt.Sprintf("%s~%016x", strings.ToValidUTF8(tenant[:min(len(tenant), longest-17)], "?"), keyfunc.Hash(tenant))
}

// Tenants adds the most heaviest tenants of a limiter with fair shares, 1 to 32, to the
// gauges, under the name of its policy: what each asked for in an overload and what was
// admitted, see [adaptive.Limiter.Tenants]. There are none without overload, and none of a
// limiter without fair shares.
//
// The tenant's key is a label; of one with more than 64 bytes it is the beginning and the
// hash. At each collection there are at most as many series as tenants, each with more than a
// 1000th of the demand; over a year there may be thousands, and keys may be personal data: so
// it is not done by default. A nil limiter, a number out of range, and a second limiter under
// the same name are errors.
func (m *Metrics) Tenants(name string, most int, l TenantLister) error {
	switch {
	case l == nil:
		return fmt.Errorf("otelmetrics: Tenants: the limiter of policy %q is nil", name)
	case most < 1 || most > mostTenants:
		return fmt.Errorf("otelmetrics: Tenants: the number of tenants is %d, want 1 to %d", most, mostTenants)
	}
	g := &m.gauges
	g.mu.Lock()
	defer g.mu.Unlock()
	name = harmless(name)
	for _, other := range g.shared {
		if other.name == name {
			return fmt.Errorf("otelmetrics: Tenants: the policy %q has a limiter already", name)
		}
	}
	g.shared = append(g.shared, shared{name, most, l})
	return nil
}

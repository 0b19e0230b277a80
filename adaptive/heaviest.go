package adaptive

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"
)

// TenantUse is one tenant's part of the demand during an overload.
type TenantUse struct {
	Tenant   string  // its key
	Asked    float64 // its part of the service that all tenants asked for, 0 to 1
	Admitted float64 // the part of its own demand that was admitted, 0 to 1
	Served   float64 // its part of the service admitted for all tenants, 0 to 1
}

const (
	heaviestTenants = 32
	heaviestMemory  = int64(10 * time.Second)
	heaviestShown   = int64(time.Minute) // after the last decision, as metrics are often collected once a minute
	heaviestStep    = int64(time.Second) // between two decays
	leastShown      = .001               // of everything
)

// heaviest finds the tenants that ask for the most service. A new tenant takes the place and the
// count of the one with the least: its count may be too large by over, but no heavy tenant is
// missed.
type heaviest struct {
	seed     maphash.Seed
	mu       sync.Mutex // decisions that find it locked are not counted, so that no request waits
	at       int64      // of the last decay; 0: never
	asked    float64    // by all
	admitted float64    // for all
	ids      [heaviestTenants]uint64
	found    [heaviestTenants]heavyTenant
}

type heavyTenant struct {
	name                  string
	count, over, admitted float64 // service
}

// asked returns the service that the tenant asked for at least.
func (t *heavyTenant) asked() float64 { return t.count - t.over }

// note counts a decision about service for tenant.
func (h *heaviest) note(tenant string, service, at int64, admitted bool) {
	if !h.mu.TryLock() {
		return
	}
	defer h.mu.Unlock()
	h.decay(at)
	t := h.place(tenant)
	t.count += float64(service)
	h.asked += float64(service)
	if admitted {
		t.admitted += float64(service)
		h.admitted += float64(service)
	}
}

func (h *heaviest) decay(at int64) {
	past := at - h.at
	if past < heaviestStep {
		return
	}
	h.at = at
	keep := math.Exp(-float64(past) / float64(heaviestMemory))
	h.asked, h.admitted = keep*h.asked, keep*h.admitted
	for i := range h.found {
		t := &h.found[i]
		t.count, t.over, t.admitted = keep*t.count, keep*t.over, keep*t.admitted
	}
}

// place returns tenant's entry, which may replace another tenant's.
func (h *heaviest) place(tenant string) *heavyTenant {
	id := maphash.String(h.seed, tenant)
	least := 0
	for i, other := range &h.ids {
		if other == id {
			return &h.found[i]
		}
		if h.found[i].count < h.found[least].count {
			least = i
		}
	}
	count := h.found[least].count
	h.ids[least], h.found[least] = id, heavyTenant{name: tenant, count: count, over: count}
	return &h.found[least]
}

// list returns the heavy tenants, largest first. It omits one whose demand is below its possible
// error: it may be only the latest of many small ones.
func (h *heaviest) list(at int64) (all []TenantUse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at-h.at > heaviestShown {
		return nil
	}
	for i := range h.found {
		if t := &h.found[i]; t.asked() > max(t.over, leastShown*h.asked) {
			served := t.admitted / max(h.admitted, 1)
			all = append(all, TenantUse{t.name, t.asked() / h.asked, t.admitted / t.asked(), served})
		}
	}
	slices.SortFunc(all, func(a, b TenantUse) int { return cmp.Compare(b.Asked, a.Asked) })
	return all
}

package service

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// unmatched counts descriptors that have no limit, and are not said to have none: a typo in a
// domain or a descriptor lifts a limit, and Envoy sees no error.
type unmatched struct {
	domains, descriptors atomic.Int64
	mu                   sync.Mutex
	logged               map[string]bool // since the file was loaded
}

// mostUnmatched bounds the lines of the log for one file.
const mostUnmatched = 100

// forget lets everything be logged again.
func (u *unmatched) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.logged = map[string]bool{}
}

// note counts a descriptor, and logs it once.
func (u *unmatched) note(log *slog.Logger, d *domain, name string, r *ratelimit.RateLimitDescriptor) {
	line, keys := "no limit: the file has no such domain. Mend the domain there or in Envoy", ""
	if d == nil {
		u.domains.Add(1)
	} else {
		u.descriptors.Add(1)
		line, keys = "no limit: the domain has no such descriptor. Mend it there or in Envoy, or say unlimited there", written(r)
	}
	u.mu.Lock()
	known := u.logged[name+"\x00"+keys] || len(u.logged) == mostUnmatched
	if !known {
		u.logged[name+"\x00"+keys] = true
	}
	u.mu.Unlock()
	switch {
	case known:
	case d == nil:
		log.Warn(line, "domain", name)
	default:
		log.Warn(line, "domain", name, "descriptor", keys)
	}
}

// written writes the keys of a descriptor, and those values that Envoy's configuration has; others may be a client's.
func written(r *ratelimit.RateLimitDescriptor) string {
	var all []string
	for _, e := range r.GetEntries() {
		text := e.GetKey()
		if slices.Contains([]string{"generic_key", "header_match"}, text) {
			text += "=" + e.GetValue()
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// unmatched reports whether a descriptor has no limit, and is not said to be unlimited.
func (a *asked) unmatched() bool { return a.limit == nil && (a.node == nil || !a.node.Unlimited) }

// Unmatched returns how many descriptors came in domains that the file does not have, and how many of
// other domains have no limit and are not said to be unlimited.
func (s *Service) Unmatched() (domains, descriptors int64) {
	return s.unmatched.domains.Load(), s.unmatched.descriptors.Load()
}

// Missing returns a line for each descriptor of r without a limit, and charges nothing.
func (s *Service) Missing(r *rls.RateLimitRequest) (all []error) {
	d := (*s.current.Load())[r.GetDomain()]
	for _, descriptor := range r.GetDescriptors() {
		a, err := s.ask(d, r, descriptor)
		s.overrides.done([]asked{a})
		switch {
		case err != nil:
		case a.unmatched() && d == nil:
			err = fmt.Errorf("no limit: the file has no domain %q", r.GetDomain())
		case a.unmatched():
			err = fmt.Errorf("no limit: domain %q has none for %s", r.GetDomain(), written(descriptor))
		default:
			continue
		}
		all = append(all, err)
	}
	return all
}

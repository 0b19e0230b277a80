package grpcmw

import (
	"fmt"
	"slices"
	"strings"
)

// defaultExempt are the services that operators need while a limit is spent: a
// load balancer whose health check is denied takes the server out of rotation.
var defaultExempt = []string{
	"/grpc.health.v1.Health/*",
	"/grpc.reflection.v1.ServerReflection/*",
	"/grpc.reflection.v1alpha.ServerReflection/*",
}

// WithExempt lets methods through without asking the limiter, in addition to
// health and reflection: "/package.Service/Method", or "/package.Service/*"
// for all of a service.
func WithExempt(methods ...string) Option {
	return newOption("WithExempt", func(s *settings) error {
		for _, m := range methods {
			if !wellFormed(m) {
				return fmt.Errorf(`%q is neither "/package.Service/Method" nor "/package.Service/*"`, m)
			}
		}
		s.Own.exempt = append(s.Own.exempt, methods...)
		return nil
	})
}

// WithoutDefaultExempt limits health and reflection as well. Give the prober
// its own key then, or a spent limit takes the server out of rotation.
func WithoutDefaultExempt() Option {
	return newOption("WithoutDefaultExempt", func(s *settings) error {
		s.Own.noDefaults = true
		return nil
	})
}

func wellFormed(method string) bool {
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return ok && method[0] == '/' && service != "" && name != "" && !strings.Contains(name, "/") &&
		!strings.Contains(service, "*") && (name == "*" || !strings.Contains(name, "*"))
}

// exempt are the methods that pass without a limit.
type exempt struct {
	services []string // with both slashes
	methods  map[string]struct{}
}

func newExempt(s interceptorOptions) exempt {
	all := s.exempt
	if !s.noDefaults {
		all = slices.Concat(all, defaultExempt)
	}
	var e exempt
	for _, m := range all {
		if service, found := strings.CutSuffix(m, "*"); found {
			e.services = append(e.services, service)
			continue
		}
		if e.methods == nil {
			e.methods = make(map[string]struct{})
		}
		e.methods[m] = struct{}{}
	}
	return e
}

// covers is on the path of every call. The services are few, and comparing
// prefixes costs less than looking up the method's service.
func (e *exempt) covers(method string) bool {
	for _, s := range e.services {
		if strings.HasPrefix(method, s) {
			return true
		}
	}
	if e.methods == nil {
		return false
	}
	_, found := e.methods[method]
	return found
}

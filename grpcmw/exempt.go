package grpcmw

import (
	"fmt"
	"strings"
)

// healthCheck is exempt by default, because a load balancer whose health check is
// denied takes the server out of rotation. It is exempt only as a unary call, with
// one short answer: a server with grpc.UnknownServiceHandler accepts any method as a
// stream. Watch and reflection are streams, which a client over its limit could use
// for ever.
const healthCheck = "/grpc.health.v1.Health/Check"

// WithExempt passes methods unlimited, in place of the default, the unary health
// check: "/package.Service/Method", or "/package.Service/*" for all methods of a
// service, even unknown ones. Clients that watch the health of a server
// (client-side health checking) need "/grpc.health.v1.Health/Watch", unless the
// limit is one per client.
func WithExempt(methods ...string) Option {
	return newOption("WithExempt", func(s *settings) error {
		for _, m := range methods {
			if !wellFormed(m) {
				return fmt.Errorf(`%q is neither "/package.Service/Method" nor "/package.Service/*"`, m)
			}
		}
		s.Own.exempt = append([]string{}, methods...)
		return nil
	})
}

func wellFormed(method string) bool {
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return ok && method[0] == '/' && service != "" && name != "" && !strings.Contains(name, "/") &&
		!strings.Contains(service, "*") && (name == "*" || !strings.Contains(name, "*"))
}

// exempt holds the methods that pass without a limit.
type exempt struct {
	services []string // with both slashes
	methods  map[string]struct{}
	check    bool // healthCheck, if it is unary
}

func newExempt(s interceptorOptions) exempt {
	e := exempt{check: s.exempt == nil}
	for _, m := range s.exempt {
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

// unary reports whether method is exempt only as a unary call.
func (e *exempt) unary(method string) bool { return e.check && method == healthCheck }

// covers reports whether method is exempt. It compares prefixes, because services are
// few and looking up the method's service would cost every call more.
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

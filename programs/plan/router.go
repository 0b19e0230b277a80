package main

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/plan/accesslog"
)

// router finds the route of a record, as the gateway does. It is used by several readers at once.
type router struct {
	mux, spellings http.ServeMux
	spelled        map[string]string // patterns by those of spellings
	known          sync.Map          // requests by method, host and path
	size           atomic.Int64
}

func newRouter() *router { return &router{spelled: map[string]string{}} }

// mostKnown bounds the routes, and the keys of addresses, that are remembered.
const mostKnown = 100_000

// add adds a route, whose patterns config has checked.
func (r *router) add(route *config.Route) {
	nothing := func(http.ResponseWriter, *http.Request) {}
	r.mux.HandleFunc(route.Pattern, nothing)
	if route.AnySpelling {
		as := config.SpellingPattern(route.Pattern)
		r.spelled[as] = route.Pattern
		r.spellings.HandleFunc(as, nothing)
	}
}

// of returns the request of a record, with the pattern of its route and the parts of its path.
func (r *router) of(record *accesslog.Record) *http.Request {
	method, _ := record.Get("method")
	host, _ := record.Get("host")
	target, _ := record.Get("path")
	id := method + " " + host + " " + target
	if known, ok := r.known.Load(id); ok {
		return known.(*http.Request)
	}
	found := r.match(method, host, target)
	if r.size.Add(1) <= mostKnown {
		r.known.Store(strings.Clone(id), found)
	}
	return found
}

func (r *router) match(method, host, target string) *http.Request {
	in := func(mux *http.ServeMux, u *url.URL) *http.Request {
		request := &http.Request{Method: strings.Clone(method), Host: strings.Clone(host), URL: u}
		mux.ServeHTTP(nowhere{}, request) // sets the pattern
		return request
	}
	clean := path.Clean("/" + target)
	if strings.HasSuffix(target, "/") && clean != "/" {
		clean += "/"
	}
	plain, err := url.PathUnescape(clean)
	if err != nil {
		plain = clean
	}
	found := in(&r.mux, &url.URL{Path: plain, RawPath: clean})
	if len(r.spelled) == 0 {
		return found
	}
	as := in(&r.spellings, &url.URL{Path: config.Spelling(clean)})
	if as.Pattern == "" || specificity(as.Pattern) < specificity(found.Pattern) {
		return found
	}
	as.Pattern = r.spelled[as.Pattern]
	return as
}

// specificity orders patterns as the gateway does: every part of the path counts, and one that is named more
// than a wildcard.
func specificity(pattern string) (n int) {
	_, path, _ := strings.Cut(pattern, "/")
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "", strings.HasSuffix(part, "...}"), part == "{$}":
		case strings.HasPrefix(part, "{"):
			n++
		default:
			n += 2
		}
	}
	return n
}

// nowhere drops the redirects of a ServeMux.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

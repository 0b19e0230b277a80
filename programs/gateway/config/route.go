package config

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Route sends the requests that match a pattern to an upstream.
type Route struct {
	// Pattern is one of http.ServeMux: "GET /items/{id}", "api.example.com/".
	Pattern string
	// AnySpelling matches the paths that many frameworks take for those of the pattern:
	// in another case, with or without a slash at the end, with matrix parameters,
	// or escaped. Such a path is on this route unless a more specific one matches it.
	AnySpelling bool
	// Upstream has the scheme http, https or h2c, which is HTTP/2 without TLS.
	Upstream *url.URL
	// Limits all have room for a request, or none is charged.
	Limits []*Limit
	// MissingKey is the treatment of requests without a key: shared, deny or
	// skip.
	MissingKey string
	// Headers is the form of the fields for clients: ietf, legacy or none.
	Headers string
	// UpstreamFields is what becomes of the upstream's own rate fields: tighter, keep or drop.
	UpstreamFields string
	// RefundOn are the statuses for which a request is not charged.
	RefundOn []int
	// InFlight is how many requests may be with the upstream at once; 0: no bound.
	InFlight int
	// InFlightPerClient is how many of them may be of one client; 0: no bound.
	InFlightPerClient int
	Access            Access
	Denial            *Denial // nil: the standard answer
	// PreserveHost sends the client's Host to the upstream.
	PreserveHost bool
}

func (b *book) readRoutes(v *value) (all []*Route) {
	if v == nil {
		return nil
	}
	mux, spellings := http.NewServeMux(), http.NewServeMux()
	for _, item := range v.items() {
		all = append(all, b.readRoute(item, mux, spellings))
	}
	if len(all) == 0 && v.isSequence() {
		v.fail("is an empty list")
	}
	return all
}

func (b *book) readRoute(v value, mux, spellings *http.ServeMux) *Route {
	r := &Route{Access: b.file.Access, Denial: b.file.Denial, MissingKey: "shared", Headers: "ietf", UpstreamFields: "tighter", RefundOn: []int{http.StatusBadGateway, http.StatusServiceUnavailable}}
	v.fields(
		field{name: "pattern", required: true, read: func(v value) { r.Pattern = v.text(); register(v, mux, r.Pattern) }},
		field{name: "any_spelling", read: func(v value) { r.AnySpelling = v.boolean() }},
		field{name: "upstream", required: true, read: func(v value) { r.Upstream = readURL(v) }},
		field{name: "limits", read: func(v value) { r.Limits = b.readLimits(v) }},
		field{name: "missing_key", read: func(v value) { r.MissingKey = v.oneOf("shared", "deny", "skip") }},
		field{name: "headers", read: func(v value) { r.Headers = v.oneOf("ietf", "legacy", "none") }},
		field{name: "upstream_fields", read: func(v value) { r.UpstreamFields = v.oneOf("tighter", "keep", "drop") }},
		field{name: "refund_on", read: func(v value) { r.RefundOn = readStatuses(v) }},
		field{name: "in_flight", read: func(v value) { r.InFlight = int(v.whole(1, 1<<30)) }},
		field{name: "in_flight_per_client", read: func(v value) { r.InFlightPerClient = int(v.whole(1, 1<<30)) }},
		field{name: "access", read: func(v value) { r.Access = Access{}; r.Access.read(v) }},
		field{name: "denial", read: func(v value) { r.Denial = readDenial(v) }},
		field{name: "preserve_host", read: func(v value) { r.PreserveHost = v.boolean() }},
	)
	if r.AnySpelling {
		register(v, spellings, SpellingPattern(r.Pattern))
	}
	r.checkPathKeys(v)
	return r
}

// checkPathKeys finds keys of parts of the path that the pattern does not name.
func (r *Route) checkPathKeys(v value) {
	for _, l := range r.Limits {
		for _, k := range l.Keys {
			if k.Kind == "path" && !strings.Contains(r.Pattern, "{"+k.Name+"}") && !strings.Contains(r.Pattern, "{"+k.Name+"...}") {
				v.fail("has the limit %q by %s, and the pattern %q has no {%s}", l.Name, k, r.Pattern, k.Name)
			}
		}
	}
}

func readStatuses(v value) (all []int) {
	for _, item := range v.items() {
		all = append(all, int(item.whole(200, 599)))
	}
	return all
}

// registered is where in the program a pattern was registered, which does not
// help the author of the file.
var registered = regexp.MustCompile(` \(registered at [^)]*\)`)

// register adds a pattern to a mux, which reports invalid and conflicting patterns best.
func register(v value, mux *http.ServeMux, pattern string) {
	defer func() {
		if p := recover(); p != nil {
			line, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			v.fail("is %q: %s", pattern, strings.TrimSuffix(registered.ReplaceAllString(line, ""), ":"))
		}
	}()
	if pattern != "" {
		mux.Handle(pattern, http.NotFoundHandler())
	}
}

func readURL(v value) *url.URL {
	s := v.expanded()
	u, err := url.Parse(s)
	if s != "" && (err != nil || u.Port() != "" && !validPort(u.Port()) || !slices.Contains([]string{"http", "https", "h2c"}, u.Scheme) || u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
		v.fail("is %q, want a URL such as http://127.0.0.1:9000, https:// or h2c://", s)
	}
	return u
}

package config

import "golang.org/x/net/http/httpguts"

// Headers are the fields that a domain of the rate limit service adds to responses.
type Headers struct {
	// IETF adds RateLimit, RateLimit-Policy and Retry-After.
	IETF bool
	// Limit, Remaining and Reset are the names of fields of one number each, as
	// envoyproxy/ratelimit has them, of the limit with the least remaining: its
	// units, those that remain, and the seconds until all are back. Empty: without.
	Limit, Remaining, Reset string
}

// readHeaders reads ietf, none, or the names of fields.
func readHeaders(v value) (h Headers) {
	if !v.isMapping() {
		h.IETF = v.oneOf("ietf", "none") == "ietf"
		return h
	}
	name := func(to *string) func(value) {
		return func(v value) {
			*to = v.text()
			if *to != "" && !httpguts.ValidHeaderFieldName(*to) {
				v.fail("is %q, want the name of a header field", *to)
			}
		}
	}
	v.fields(
		field{name: "limit", read: name(&h.Limit)},
		field{name: "remaining", read: name(&h.Remaining)},
		field{name: "reset", read: name(&h.Reset)},
	)
	return h
}

package config

import "net/netip"

// Access is lists of addresses. A route has its own lists or the file's.
type Access struct {
	Deny  []netip.Prefix // answered with 403
	Allow []netip.Prefix // not limited
}

func (a *Access) read(v value) {
	list := func(to *[]netip.Prefix) func(value) {
		return func(v value) {
			*to = readAddresses(v)
		}
	}
	v.fields(
		field{name: "deny", read: list(&a.Deny)},
		field{name: "allow", read: list(&a.Allow)},
	)
}

// readAddresses reads addresses and prefixes. Clients of IPv6 are distinguished by
// their /64, so a longer prefix would match none of them.
func readAddresses(v value) (all []netip.Prefix) {
	for _, item := range v.items() {
		p, ok := readPrefix(item)
		if ok && p.Addr().Is6() && p.Bits() > 64 {
			item.fail("is %s, want at most /64 for IPv6", p)
		}
		all = append(all, p.Masked())
	}
	return all
}

// IsZero reports whether both lists are empty.
func (a Access) IsZero() bool { return len(a.Deny) == 0 && len(a.Allow) == 0 }

// Denial is the answer to a request that a limit denies.
type Denial struct {
	Status      int
	ContentType string
	Body        string
}

func readDenial(v value) *Denial {
	d := &Denial{Status: 429, ContentType: "text/plain; charset=utf-8"}
	v.fields(
		field{name: "status", read: func(v value) { d.Status = int(v.whole(400, 599)) }},
		field{name: "content_type", read: func(v value) { d.ContentType = v.text() }},
		field{name: "body", required: true, read: func(v value) { d.Body = v.text() }},
	)
	return d
}

package keyfunc

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/sluice-go/sluice/keyfunc/internal/clientip"
)

// maxHost bounds a host name with port: 253 bytes of DNS name (RFC 1035), a final
// dot, and the port.
const maxHost = 260

var errNoHost = noKey("the host is not in the list of allowed hosts")

// Host keys requests by their host name, if allowed lists it; any other is
// [ErrNoKey]. The list is required, because a client can write anything into the
// Host header.
//
// Case, port and a final dot do not matter. The key is the allowed name in
// lower case: "example.com". IPv6 literals are given in brackets.
//
// It panics if the list is empty, or a name is empty, has a port, or has a
// character that host names cannot have; there are no wildcards.
func Host(allowed ...string) HTTP {
	require(len(allowed) > 0, "Host", "the list of allowed hosts is empty")
	keys := make(map[string]string, len(allowed))
	for _, name := range allowed {
		key := hostName(name)
		require(key != "" && strings.EqualFold(key, strings.TrimSuffix(name, ".")) && validHost(key),
			"Host", "an allowed host is not a plain host name")
		keys[key] = key
	}
	return func(r *http.Request) (string, error) {
		if len(r.Host) <= maxHost {
			if key, ok := keys[hostName(r.Host)]; ok {
				return key, nil
			}
		}
		return "", errNoHost
	}
}

// hostName returns a Host header without port and final dot, in lower case.
func hostName(s string) string {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && clientip.IsPort(s[i+1:]) {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// validHost reports whether s is made of letters, digits, hyphens,
// underscores and dots, or is an IPv6 literal.
func validHost(s string) bool {
	if host, ok := strings.CutPrefix(s, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(host, "]"))
		return err == nil && addr.Is6() && strings.HasSuffix(host, "]")
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

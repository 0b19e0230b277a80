package keyfunc

import (
	"net/http"
	"strings"
)

// maxHost is the longest host name with port that is looked at: 253 bytes of
// DNS name (RFC 1035), a final dot, and the port.
const maxHost = 260

var errNoHost = noKey("the host is not one of those allowed")

// Host is the host name the request is addressed to, if it is one of those
// allowed; any other is [ErrNoKey]. A client can write anything into the Host
// header, so a list is required.
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

// hostName is a Host header without port and final dot, in lower case.
func hostName(s string) string {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && isPort(s[i+1:]) {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// validHost reports whether s is made of letters, digits, hyphens,
// underscores and dots, or is an IPv6 literal.
func validHost(s string) bool {
	if strings.HasPrefix(s, "[") {
		_, ok := parseBracketed(s, isPort)
		return ok
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

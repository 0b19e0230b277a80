package proxy

import (
	"io"
	"net/http"
	"net/netip"

	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// denied answers clients of a list with 403.
func denied(list, trusted []netip.Prefix, next http.Handler) http.Handler {
	return allowed(list, trusted, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
	}), next)
}

// allowed sends clients of a list to one handler and all others to another. A
// client is the address that a limit by address counts.
func allowed(list, trusted []netip.Prefix, listed, others http.Handler) http.Handler {
	if len(list) == 0 {
		return others
	}
	address := keyfunc.ClientIP(trusted...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := address(r)
		if err == nil && contains(list, key) {
			listed.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// contains reports whether the key of an address, or of a /64 of IPv6, is in one of the
// prefixes.
func contains(list []netip.Prefix, key string) bool {
	addr, err := netip.ParseAddr(key)
	if p, errPrefix := netip.ParsePrefix(key); errPrefix == nil {
		addr, err = p.Addr(), nil
	}
	if err != nil {
		return false
	}
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// denialOf answers denied requests as the file says; a lack of capacity keeps its
// status.
func denialOf(d *config.Denial) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := d.Status
		if is, ok := httpmw.DenialFrom(r.Context()); ok && is.Status != http.StatusTooManyRequests {
			status = is.Status
		}
		w.Header().Set("Content-Type", d.ContentType)
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, d.Body) // best effort: the client may be gone
		}
	})
}

package keyfunc

import (
	"net/netip"
)

// Forwarded is [ClientIP] with the header of RFC 7239, Forwarded, with its
// quoting, brackets and ports. X-Forwarded-For is ignored: the two headers are
// never merged.
//
// An address given as "unknown", by an obfuscated name, or not at all, is
// unreadable. So is every address of a line with an error anywhere in it:
// otherwise a client could leave a quote open and hide the address that the
// proxy adds. A client can therefore put itself into the shared limit of
// unreadable addresses.
//
// It panics as ClientIP does.
func Forwarded(trusted ...netip.Prefix) HTTP {
	return must(IPConfig{Header: "Forwarded", Trusted: trusted}.HTTP())
}

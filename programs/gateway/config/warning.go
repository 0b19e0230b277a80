package config

import (
	"fmt"
	"log/slog"
	"net/netip"
)

// LogWarnings logs what is accepted and dubious.
func (f *File) LogWarnings(log *slog.Logger) {
	for _, w := range f.Warnings {
		log.Warn("dubious configuration", "code", "gateway.configuration", "field", w.Field, "at", w.Error())
	}
}

// warnOfAddresses warns of limits by address in a file that does not say whether there are proxies.
func (f *File) warnOfAddresses(v value) {
	for _, r := range f.Routes {
		for _, l := range r.Limits {
			if HasKind(l.Keys, "ip") {
				f.Warnings = append(f.Warnings, &Error{
					File: f.Path, Line: v.node.Line, Column: v.node.Column, Field: "trusted_proxies",
					Reason: fmt.Sprintf("is missing, and limit %q is by address: behind a proxy all clients would be one; name the proxies, or [] if there are none", l.Name),
				})
				return
			}
		}
	}
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

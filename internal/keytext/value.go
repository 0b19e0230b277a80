// Package keytext writes keys, so that HTTP and gRPC give one identity the
// same key and two identities never share one. Package keyfunc documents the
// forms.
package keytext

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxPlain is the longest value, in bytes, that is a key unchanged.
	maxPlain = 128
	// MaxValue is the longest value, in bytes, that has a key. Hashing one
	// costs less than receiving it.
	MaxValue = 128 << 10
)

// Value is the key of a value from outside: a header, a user name, an identity
// in a context. It reports false for an empty value and for one longer than
// MaxValue.
//
// A value is its own key, with three exceptions:
//
//   - longer than maxPlain: hashed. Cutting it off instead would give all
//     values with the same beginning the same key.
//   - control characters, invalid UTF-8, other unprintable runes: hashed, so
//     that keys are safe to show.
//   - the key of something else: tagged. Otherwise a client could choose
//     the name "203.0.113.7" and spend the limit of that address.
func Value(v string) (string, bool) {
	switch {
	case v == "" || len(v) > MaxValue:
		return "", false
	case plain(v) && !reserved(v):
		return v, true
	}
	return Valued.of(v), true
}

// Single is [Value] of the only element of values. It reports false if there is
// not exactly one.
func Single(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	return Value(values[0])
}

// digest is the first half of SHA-256, in hexadecimal: finding a second value
// with the digest of a given one takes about 2^128 attempts.
func digest(v string) string {
	sum := sha256.Sum256([]byte(v))
	return hex.EncodeToString(sum[:16])
}

// plain reports whether v is short and printable.
func plain(v string) bool {
	if len(v) > maxPlain {
		return false
	}
	for i := 0; i < len(v); i++ {
		if c := v[i]; c < ' ' || c > '~' {
			return printable(v)
		}
	}
	return true
}

func printable(v string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return utf8.ValidString(v) && !strings.ContainsFunc(v, unprintable)
}

// reserved reports whether v is written like a key of another kind: a name of
// package keyfunc, a method, a route, a SPIFFE ID, an address.
func reserved(v string) bool {
	return v[0] == '~' || isRoute(v) || strings.HasPrefix(v, spiffe) || isAddress(v)
}

const spiffe = "spiffe://"

// Route is the key of a pattern. One that begins with a host, or with a method
// that is not in upper case, could be the name of a user.
func Route(pattern string) string {
	if isRoute(pattern) {
		return pattern
	}
	return Routed.With(pattern)
}

// isRoute reports whether v is written like a route or a method of gRPC: "/..."
// or "METHOD ... / ...".
func isRoute(v string) bool {
	if v[0] == '/' {
		return true
	}
	n := 0
	for n < len(v) && 'A' <= v[n] && v[n] <= 'Z' {
		n++
	}
	return n > 0 && n < len(v) && (v[n] == ' ' || v[n] == '\t') && strings.Contains(v[n:], "/")
}

// maxAddress is longer than every address or prefix without its zone.
const maxAddress = 64

// isAddress reports whether v is an address or a prefix, with any zone: net/netip
// would keep the zones that it sees.
func isAddress(v string) bool {
	v, _, _ = strings.Cut(v, "%")
	if len(v) > maxAddress || !addressLike(v) {
		return false
	}
	if strings.Contains(v, "/") {
		_, err := netip.ParsePrefix(v)
		return err == nil
	}
	_, err := netip.ParseAddr(v)
	return err == nil
}

// addressLike reports whether v consists of the characters of an address, with
// at least one separator. It saves most values the parsing.
func addressLike(v string) bool {
	separated := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '.' || c == ':':
			separated = true
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F', c == '/':
		default:
			return false
		}
	}
	return separated
}

// Package keytext writes keys, so that HTTP and gRPC give one identity the
// same key and two identities never share one. Package keyfunc documents the
// forms.
package keytext

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Global is the one key of a limit that is not split by client.
	Global = "~global"
	// unix is the key of every client on a Unix socket.
	unix = "local"
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
// Most values are their own key. Three kinds are rewritten:
//
//   - longer than maxPlain: hashed. Cutting it off instead would give all
//     values with the same beginning the same key.
//   - control characters, invalid UTF-8, other unprintable runes: hashed, so
//     that keys are safe to show.
//   - everything that could be mistaken for an address, a route, a method or a
//     name of package keyfunc: tagged. Otherwise a client could choose the name
//     "203.0.113.7" and spend the limit of that address.
func Value(v string) (string, bool) {
	switch {
	case v == "" || len(v) > MaxValue:
		return "", false
	case plain(v) && !ambiguous(v):
		return v, true
	}
	return tagged("value", v), true
}

// Single is [Value] of the only element of values. It reports false if there is
// not exactly one.
func Single(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	return Value(values[0])
}

// tagged puts the name of a kind before a value. The hashed form has another
// separator, so no value is written like the hash of another.
func tagged(kind, v string) string {
	if plain(v) {
		return "~" + kind + ":" + v
	}
	return "~" + kind + "#" + digest(v)
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

// ambiguous reports whether v looks like a key of another kind. It errs on the
// side of true.
func ambiguous(v string) bool {
	return v[0] == '~' || v == unix || strings.Contains(v, "/") || addressLike(v)
}

// addressLike reports whether v consists of the characters of an address, with
// at least one separator. A zone may contain any characters.
func addressLike(v string) bool {
	separated := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '.' || c == ':':
			separated = true
		case c == '%':
			return separated
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return separated
}

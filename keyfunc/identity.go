package keyfunc

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxPlain is the longest value, in bytes, that is used as it stands.
	maxPlain = 128
	// maxValue is the longest value, in bytes, that is looked at. Hashing
	// this much costs less than receiving it did.
	maxValue = 128 << 10
)

// identity makes a key of a value that came from outside: a header, a user
// name, what authentication left in the context. It reports false for an
// empty value and for one above maxValue.
//
// Most values stand as they are. Three kinds are rewritten:
//
//   - longer than maxPlain: hashed. Cutting it off instead would give every
//     value with the same beginning the same key.
//   - control characters, invalid UTF-8, other unprintable runes: hashed, so
//     that keys are safe to show.
//   - what could be mistaken for an address, a route, a method or a name of
//     this package: tagged. Otherwise a client could name itself
//     "203.0.113.7" and spend the limit of that address.
func identity(v string) (string, bool) {
	switch {
	case v == "" || len(v) > maxValue:
		return "", false
	case standsPlain(v) && !mistakable(v):
		return v, true
	}
	return tagged("value", v), true
}

// tagged puts the name of a kind before a value. The hashed form has another
// separator, so a value cannot be spelled like the hash of another.
func tagged(kind, v string) string {
	if standsPlain(v) {
		return "~" + kind + ":" + v
	}
	return "~" + kind + "#" + digest(v)
}

// digest is the first half of SHA-256, in hexadecimal: to find a second value
// with the digest of a given one takes about 2^128 attempts.
func digest(v string) string {
	sum := sha256.Sum256([]byte(v))
	return hex.EncodeToString(sum[:16])
}

// standsPlain reports whether v is short and printable.
func standsPlain(v string) bool {
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

// mistakable reports whether v has the shape of a key that means something
// else. It errs on the side of true.
func mistakable(v string) bool {
	return v[0] == '~' || v == localKey || strings.Contains(v, "/") || addressLike(v)
}

// addressLike reports whether v has nothing but the characters of an address,
// and at least one separator. What follows them as a zone may be anything.
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

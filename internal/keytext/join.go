package keytext

import (
	"strconv"
	"strings"
)

const (
	// maxPart is the longest part, in bytes, that a joined key contains
	// unhashed.
	maxPart = 256
	// UsualParts is the number of parts whose list needs no allocation.
	UsualParts = 4
)

// Join writes parts so that they can be read back: after the tag, "/", the
// length in decimal, ":" and that many bytes; or "/#" and 32 hexadecimal
// digits of SHA-256.
func Join(parts []string) string {
	tag := Joined.Key()
	size := len(tag)
	for _, p := range parts {
		size += min(len(p), maxPart) + len("/256:")
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(tag)
	for _, p := range parts {
		b.WriteByte('/')
		if len(p) > maxPart {
			b.WriteByte('#')
			b.WriteString(digest(p))
			continue
		}
		var digits [4]byte
		b.Write(strconv.AppendInt(digits[:0], int64(len(p)), 10))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return b.String()
}

package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Key returns prefix:{tag}:limit, with prefix and limit already escaped. The tag is
// the escaped key, so that all limits on one key share a slot and can be decided in
// one step. For the empty key it is a colon, which no escaped key contains, and limit.
func Key(prefix, limit, key string) string {
	if key == "" {
		return prefix + ":{:" + limit + "}:" + limit
	}
	return prefix + ":{" + Escape(key) + "}:" + limit
}

// MaxTag bounds the bytes of a caller's key in Redis. A longer key is replaced by
// its SHA-256.
const MaxTag = 200

// Escape writes the bytes of the layout as %XX, so that a key can neither choose its
// slot nor collide with another key, and control characters for logs and terminals.
func Escape(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s) && b.Len() <= MaxTag; i++ {
		if c := s[i]; special[c] {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	if b.Len() <= MaxTag {
		return b.String()
	}
	sum := sha256.Sum256([]byte(s))
	return "~" + hex.EncodeToString(sum[:])
}

func plain(s string) bool {
	for i := range len(s) {
		if special[s[i]] {
			return false
		}
	}
	return len(s) <= MaxTag
}

// special holds the bytes of the layout, the escape characters and control
// characters.
var special = func() (set [256]bool) {
	for c := range 0x21 {
		set[c] = true
	}
	for _, c := range "%{}:~\x7f" {
		set[c] = true
	}
	return set
}()

// slot returns the hash slot of a Redis key in a cluster: CRC16 (XMODEM) of the
// part in the first pair of braces, modulo 16384.
func slot(key string) int {
	if _, tail, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(tail, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc) % clusterSlots
}

const clusterSlots = 16384

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// tagOf returns the part of redisKey that selects its slot.
func tagOf(redisKey string) string {
	_, tail, _ := strings.Cut(redisKey, "{")
	tag, _, _ := strings.Cut(tail, "}")
	return tag
}

// probeKey returns a key that belongs to no limit, on the node of redisKey.
func probeKey(redisKey string) string {
	head, _, _ := strings.Cut(redisKey, "}")
	return head + "}::probe"
}

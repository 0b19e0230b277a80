package keyfunc

import (
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"
)

var (
	hashSeed   = maphash.MakeSeed()
	hashPepper atomic.Pointer[macs] // nil: by hashSeed
)

// Hash returns a number that identifies a key in events and logs, which must not
// contain addresses and user names; 0 for the empty key. Equal keys have equal hashes in one
// process, over HTTP and gRPC alike. Without [SetHashPepper] each process hashes
// differently, so that a key cannot be found by guessing. Do not decide by a hash:
// two keys may share one.
func Hash(key string) uint64 {
	if key == "" {
		return 0
	}
	if m := hashPepper.Load(); m != nil {
		sum := m.sum(key)
		return max(1, binary.BigEndian.Uint64(sum[:]))
	}
	return max(1, maphash.String(hashSeed, key))
}

// SetHashPepper gives [Hash] a secret of the service, so that all its instances give
// a key the same hash, and do so after a restart: 16 random bytes or more. The hash
// is then the first 64 bits of HMAC-SHA-256 (RFC 2104) under a key that is derived
// from the pepper; the pepper may be the same as for [Secret]. With the pepper,
// guesses can be tested against hashes in logs. A hash takes some hundred
// nanoseconds then instead of five.
//
// Call it once, when the program begins: hashes from before are other ones. It panics
// if the pepper is empty.
func SetHashPepper(pepper []byte) {
	require(len(pepper) > 0, "SetHashPepper", "the pepper is empty")
	derived := newMacs(pepper).sum("keyfunc.Hash")
	hashPepper.Store(newMacs(derived[:]))
}

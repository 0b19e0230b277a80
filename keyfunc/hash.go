package keyfunc

import (
	"hash/maphash"
)

var hashSeed = maphash.MakeSeed()

// Hash identifies a key in events and logs, which must not contain addresses and
// user names. It is 0 for the empty key. Equal keys have equal hashes in one
// process, over HTTP and gRPC alike. Each process hashes differently, so that a
// key cannot be found by trying. Do not store it, and do not decide by it: two
// keys may share a hash.
func Hash(key string) uint64 {
	if key == "" {
		return 0
	}
	return maphash.String(hashSeed, key)
}

package keyfunc

import (
	"hash/maphash"
)

var hashSeed = maphash.MakeSeed()

// Hash tells keys apart without naming them, for events and logs: addresses and
// user names have no place there. It is 0 for the empty key. Equal keys have
// equal hashes in one process, over HTTP and gRPC alike; each process hashes
// differently, so that nobody finds a key by trying. Do not store it, and do not
// decide by it: two keys may share a hash.
func Hash(key string) uint64 {
	if key == "" {
		return 0
	}
	return maphash.String(hashSeed, key)
}

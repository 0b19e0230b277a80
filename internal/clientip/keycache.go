package clientip

import (
	"sync/atomic"
)

// cachedKeys bounds the memory: 8 KiB of pointers, and at most as many entries
// of about 100 bytes each.
const cachedKeys = 1 << 10

// keyCache keeps the texts of recent addresses, so that a returning client
// costs no allocation. Each address has one slot; two addresses of the same
// slot replace each other, which costs one allocation. A flood of addresses
// therefore cannot fill it.
type keyCache struct {
	slots [cachedKeys]atomic.Pointer[cachedKey]
}

// cachedKey is immutable.
type cachedKey struct {
	addr ip
	text string
}

// get is the text of a, or "".
func (c *keyCache) get(a ip) string {
	if e := c.slots[a.slot(cachedKeys)].Load(); e != nil && e.addr == a {
		return e.text
	}
	return ""
}

// put stores the text of a.
func (c *keyCache) put(a ip, text string) {
	c.slots[a.slot(cachedKeys)].Store(&cachedKey{addr: a, text: text})
}

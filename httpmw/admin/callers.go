package admin

import (
	"strings"
	"sync/atomic"

	"github.com/sluice-go/sluice/keyfunc"
)

// callers remembers which keys a limiter was asked for lately: all of them by a
// few bits, so that an action on a key that never came is noticed, and those
// that the page shows by name, so that an action can be taken by their hash.
// Reading and writing take no lock, and a key that is known allocates nothing.
type callers struct {
	now, before atomic.Pointer[keyBits]
	newest      newest
	wanted      [mostWanted]struct {
		hash atomic.Uint64
		key  atomic.Pointer[string]
	}
}

const (
	mostWanted = 1024
	bitsOfKeys = 1 << 18
	mostKeys   = bitsOfKeys / 16 // in one keyBits; one in thirty of the others is then taken for known
	mostNamed  = 512             // bytes of a key that is kept by name
)

// keyBits is a Bloom filter with two hash functions.
type keyBits struct {
	words [bitsOfKeys / 64]atomic.Uint64
	keys  atomic.Int32
}

// note remembers a key that the limiter is asked for.
func (c *callers) note(key string) {
	h := keyfunc.Hash(key)
	if b := c.now.Load(); b == nil || !b.has(h) {
		c.add(b, h)
		c.newest.note(key)
	}
	w := &c.wanted[h%mostWanted]
	if w.hash.Load() == h && w.key.Load() == nil && len(key) <= mostNamed {
		own := strings.Clone(key)
		w.key.Store(&own)
	}
}

// want asks for the name of a hash: note supplies it when the key comes again.
func (c *callers) want(h uint64) {
	if w := &c.wanted[h%mostWanted]; w.hash.Load() != h {
		w.hash.Store(h)
		w.key.Store(nil)
	}
}

// named returns the key of a hash that was wanted.
func (c *callers) named(h uint64) (key string, ok bool) {
	k := c.wanted[h%mostWanted].key.Load()
	if k == nil || keyfunc.Hash(*k) != h { // another hash took the place meanwhile
		return "", false
	}
	return *k, true
}

// seen reports whether key is among the last of at least 16 000 keys. One in
// thirty of the keys that are not is taken for one that is.
func (c *callers) seen(key string) bool {
	h := keyfunc.Hash(key)
	now, before := c.now.Load(), c.before.Load()
	return now != nil && now.has(h) || before != nil && before.has(h)
}

// add sets the bits of h, in a new set if b, the current one, is full.
func (c *callers) add(b *keyBits, h uint64) {
	if b == nil || b.keys.Load() >= mostKeys {
		next := new(keyBits)
		if c.now.CompareAndSwap(b, next) {
			c.before.Store(b)
		}
		b = c.now.Load()
	}
	b.set(h)
	b.keys.Add(1)
}

func (b *keyBits) has(h uint64) bool { return b.bit(h) && b.bit(h>>16) }

func (b *keyBits) bit(i uint64) bool { return b.words[i%bitsOfKeys/64].Load()&(1<<(i%64)) != 0 }

func (b *keyBits) set(h uint64) {
	for _, i := range [2]uint64{h, h >> 16} {
		b.words[i%bitsOfKeys/64].Or(1 << (i % 64))
	}
}

package admin

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/keyfunc"
)

// keyText is the key of a hash where it is known and may be shown. The one of requests without a
// key says nothing about a client.
func (c *config) keyText(policy string, hash uint64) string {
	switch {
	case hash == keyfunc.Hash(missing):
		return missing
	case !c.clear:
		return ""
	}
	key, _ := c.policy(policy).named(hash)
	return clip(key)
}

const missing = "~missing" // see package keyfunc

// named is the key of a hash, where it is known. p may be nil.
func (p *policy) named(hash uint64) (key string, ok bool) {
	if p == nil {
		return "", false
	}
	if b := p.blocks.findHash(hash, time.Now()); b != nil {
		return b.key, true
	}
	if p.can.adjust != nil {
		for key := range p.can.adjust.Adjusted() {
			if keyfunc.Hash(key) == hash {
				return key, true
			}
		}
	}
	if p.callers == nil {
		return "", false
	}
	return p.callers.named(hash)
}

// everybody is the hash of the key of a limit that does not tell callers apart.
var everybody = func() uint64 {
	key, _ := keyfunc.Global()(nil)
	return keyfunc.Hash(key)
}()

// hashDigits is the length of a hash as text.
const hashDigits = 16

// hashText writes the hash of a key, empty if there is no key.
func hashText(h uint64) string {
	switch h {
	case 0:
		return ""
	case everybody:
		return "everybody"
	}
	return fmt.Sprintf("%0*x", hashDigits, h)
}

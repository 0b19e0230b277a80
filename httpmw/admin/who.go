package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/sluice-go/sluice/algo"
)

// find is the key that an action is about: by the hash that the page shows, by
// the operators' name for the caller, or in the form that the limiter gets.
func (p *policy) find(o *order) (string, error) {
	switch {
	case o.Hash != "":
		return p.byHash(o.Hash)
	case len(o.Who) > 0:
		if len(o.Who) == 1 {
			if key, err := p.byHash(o.Who[0]); err == nil {
				return key, nil
			}
		}
		return p.byIdentity(o.Who)
	}
	if key, err := p.byHash(o.Key); err == nil {
		return key, nil
	}
	return o.Key, nil
}

func (p *policy) byHash(text string) (string, error) {
	if h, err := strconv.ParseUint(text, 16, 64); err == nil && len(text) == hashDigits {
		if key, ok := p.named(h); ok {
			return key, nil
		}
	}
	return "", orderError{http.StatusNotFound, "no key with this hash has come by again since it was shown: try again, or type the key", false}
}

func (p *policy) byIdentity(who []string) (string, error) {
	switch {
	case p.identity.key == nil:
		return "", orderError{http.StatusBadRequest, "this policy knows its callers by their keys only", false}
	case len(who) != len(p.identity.parts):
		return "", orderError{http.StatusBadRequest, fmt.Sprintf("a caller of this policy has %d parts, not %d", len(p.identity.parts), len(who)), false}
	}
	key, err := p.identity.key(who)
	if err != nil {
		return "", orderError{http.StatusBadRequest, err.Error(), false}
	}
	return key, nil
}

// seen reports whether requests with key have come by. Where that is not
// recorded, and on Redis, where another instance may have had them, a key that
// has spent something has.
func (p *policy) seen(ctx context.Context, key string) bool {
	if p.blocks.find(key) != nil || p.callers != nil && p.callers.seen(key) {
		return true
	}
	if p.callers != nil && p.can.scopes.Block == thisProcess {
		return false
	}
	d, err := p.peek(ctx, key)
	if err != nil {
		return true // the action meets the same error, and explains it
	}
	return d.Remaining < d.Limit || d.ResetAfter > 0
}

// of is the limiter that decides about key. An operator's look is no request.
func (p *policy) of(key string) algo.Limiter {
	if c := controlled(p.limiter); c != nil {
		return c.choose(key)
	}
	return p.limiter
}

// peek is the state of a key.
func (p *policy) peek(ctx context.Context, key string) (algo.Decision, error) {
	lease, err := p.of(key).Acquire(ctx, key, 0)
	if err == nil {
		lease.Release(algo.Canceled)
	}
	return lease.Decision, err
}

// errUnseen is the answer to an action on a key that no request had, unless the
// operator insists.
var errUnseen = orderError{http.StatusConflict, "no request with this key has been seen: check the spelling", true}

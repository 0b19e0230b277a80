package admin

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
)

// newest are the keys that came last among those that were not known.
type newest struct {
	next atomic.Uint32
	keys [mostNewest]atomic.Pointer[string]
}

const (
	mostNewest   = 256
	longestNew   = 64 // bytes of a key that are kept
	mostOrigins  = 5
	leastOfTenth = 10 // an origin has at least one in so many keys
)

func (n *newest) note(key string) {
	own := strings.Clone(key[:min(len(key), longestNew)])
	n.keys[n.next.Add(1)%mostNewest].Store(&own)
}

// origin is a prefix that many new keys share, and so the name of no single one.
type origin struct {
	Prefix string  `json:"prefix"`
	Part   float64 `json:"part"` // of the newest keys
}

// origins names who makes new keys: the longest prefixes that a tenth of the newest keys share, the
// heaviest first. They end after a separator, or after four bytes.
func (c *callers) origins() []origin {
	counts, total := map[string]int{}, 0
	for i := range c.newest.keys {
		if k := c.newest.keys[i].Load(); k != nil {
			total++
			for _, p := range prefixes(*k) {
				counts[p]++
			}
		}
	}
	all := []origin{}
	for p, n := range counts {
		if n > 1 && n*leastOfTenth >= total && !explained(p, n, counts) {
			all = append(all, origin{clip(p), float64(n) / float64(total)})
		}
	}
	slices.SortFunc(all, func(a, b origin) int { return cmp.Or(cmp.Compare(b.Part, a.Part), cmp.Compare(a.Prefix, b.Prefix)) })
	return all[:min(len(all), mostOrigins)]
}

// explained reports whether a longer prefix has most of the keys of p.
func explained(p string, n int, counts map[string]int) bool {
	for longer, m := range counts {
		if len(longer) > len(p) && strings.HasPrefix(longer, p) && 5*m >= 4*n {
			return true
		}
	}
	return false
}

// prefixes are the prefixes of a key that end after a separator, and that of four bytes. The key
// itself is none.
func prefixes(key string) (all []string) {
	for i := range len(key) - 1 {
		if strings.IndexByte(".:/-_@|, ", key[i]) >= 0 || i == 3 {
			all = append(all, key[:i+1])
		}
	}
	return all
}

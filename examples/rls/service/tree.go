package service

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/examples/gateway/live"
)

// tree is the limits in force, by domain. It does not change.
type tree map[string]*domain

type domain struct {
	headers config.Headers
	top     level
}

// level is the descriptors beside each other.
type level struct {
	exact    map[entry]*node
	prefixes []*node // the longest first
	any      map[string]*node
}

type entry struct{ key, value string }

// node is one descriptor of the file.
type node struct {
	key, prefix string
	limit       *limit // nil: none ends here
	unlimited   bool
	label       string   // that others replace
	replaces    []string // labels
	detailed    bool
	next        level
}

// limit is a limit in force.
type limit struct {
	name    string
	limiter algo.Limiter
	counts  algo.Limiter // the same, without Shadow
	rate    algo.Rate
}

// wanted is every limit of the file.
func wanted(f *config.File) (all []live.Wanted) {
	each(f, func(d *config.Descriptor) {
		if d.Banned {
			return
		}
		all = append(all, live.Wanted{ID: d.ID, Spec: d.Spec})
	})
	return all
}

// each visits every descriptor with a limit.
func each(f *config.File, visit func(*config.Descriptor)) {
	var down func([]*config.Descriptor)
	down = func(ds []*config.Descriptor) {
		for _, d := range ds {
			if d.Limited {
				visit(d)
			}
			down(d.Next)
		}
	}
	for _, d := range f.Domains {
		down(d.Descriptors)
	}
}

// newTree puts the limiters, by ID, where the file wants them.
func newTree(f *config.File, limiters map[string]algo.Limiter) tree {
	t := tree{}
	for _, d := range f.Domains {
		t[d.Name] = &domain{headers: d.Headers, top: newLevel(d.Descriptors, limiters)}
	}
	return t
}

func newLevel(ds []*config.Descriptor, limiters map[string]algo.Limiter) level {
	l := level{exact: map[entry]*node{}, any: map[string]*node{}}
	for _, d := range ds {
		n := &node{key: d.Key, unlimited: d.Unlimited, label: d.Label, replaces: d.Replaces, detailed: d.Detailed, next: newLevel(d.Next, limiters)}
		if d.Limited {
			limiter := limiters[d.ID]
			if d.Banned {
				limiter = banned{}
			}
			counts := limiter
			if d.Shadow {
				limiter = algo.Shadow(limiter)
			}
			rate := d.Spec.Rate
			if d.Banned {
				rate.Count = 0
			}
			n.limit = &limit{d.Name, limiter, counts, rate}
		}
		if prefix, ok := d.Prefix(); ok {
			n.prefix = prefix
			l.prefixes = append(l.prefixes, n)
		} else if d.HasValue {
			l.exact[entry{d.Key, d.Value}] = n
		} else {
			l.any[d.Key] = n
		}
	}
	slices.SortStableFunc(l.prefixes, func(a, b *node) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return l
}

func (l *level) find(key, value string) *node {
	if n := l.exact[entry{key, value}]; n != nil {
		return n
	}
	for _, n := range l.prefixes {
		if n.key == key && strings.HasPrefix(value, n.prefix) {
			return n
		}
	}
	return l.any[key]
}

// find returns what the descriptor ends at; nil if the file does not know it.
func (d *domain) find(r *ratelimit.RateLimitDescriptor) *node {
	var at *node
	for next, entries := &d.top, r.GetEntries(); len(entries) > 0; entries = entries[1:] {
		if at = next.find(entries[0].GetKey(), entries[0].GetValue()); at == nil {
			return nil
		}
		next = &at.next
	}
	return at
}

// keyOf is the key of a descriptor: its entries.
func keyOf(r *ratelimit.RateLimitDescriptor) string {
	var room [8]entry
	entries := room[:0]
	for _, e := range r.GetEntries() {
		entries = append(entries, entry{e.GetKey(), e.GetValue()})
	}
	return keyOfEntries(entries)
}

// keyOfEntries writes each part of the entries with its length before it, so
// that no two descriptors have the same key.
func keyOfEntries(entries []entry) string {
	var b strings.Builder
	for _, e := range entries {
		for _, s := range [2]string{e.key, e.value} {
			b.WriteString(strconv.Itoa(len(s)) + ":" + s + "/")
		}
	}
	return b.String()
}

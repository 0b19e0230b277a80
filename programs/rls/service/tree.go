package service

import (
	"strconv"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/programs/gateway/config"
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
	patterns []*node // in the order of the file
	any      map[string]*node
}

type entry struct{ key, value string }

// node is one descriptor of the file.
type node struct {
	*config.Descriptor
	limit *limit // nil: none ends here
	next  level
}

// limit is a limit in force.
type limit struct {
	name    string
	limiter algo.Limiter
	counts  algo.Limiter // the same, without Shadow
	rate    algo.Rate
	quota   bool
}

// wanted is every limit of the file.
func wanted(f *config.File) map[string]algo.Spec {
	all := map[string]algo.Spec{}
	each(f, func(d *config.Descriptor) {
		if !d.Banned {
			all[d.ID] = d.Spec
		}
	})
	return all
}

// named gives changes of limits the names of operators.
func named(f *config.File, changes []string) []string {
	each(f, func(d *config.Descriptor) {
		for i, change := range changes {
			if rest, ok := strings.CutPrefix(change, d.ID+": "); ok {
				changes[i] = d.Name + ": " + rest
			}
		}
	})
	return changes
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
		n := &node{Descriptor: d, next: newLevel(d.Next, limiters)}
		if d.Limited {
			limiter := limiters[d.ID]
			if d.Banned {
				limiter = algo.DenyAll()
			}
			counts := limiter
			if d.Shadow || d.Quota {
				limiter = algo.Shadow(limiter)
			}
			rate := d.Spec.Rate
			if d.Banned {
				rate.Count = 0
			}
			n.limit = &limit{d.Name, limiter, counts, rate, d.Quota && !d.Shadow}
		}
		switch {
		case d.Pattern():
			l.patterns = append(l.patterns, n)
		case d.HasValue:
			l.exact[entry{d.Key, d.Value}] = n
		default:
			l.any[d.Key] = n
		}
	}
	return l
}

func (l *level) find(key, value string) *node {
	if n := l.exact[entry{key, value}]; n != nil {
		return n
	}
	for _, n := range l.patterns {
		if n.Key == key && n.Matches(value) {
			return n
		}
	}
	return l.any[key]
}

// find returns what the descriptor ends at, nil if the file does not know it, and the key of the
// descriptor: its entries, the shared ones with the pattern of the file.
func (d *domain) find(r *ratelimit.RateLimitDescriptor) (at *node, key string) {
	var room [8]entry
	entries := room[:0]
	next := &d.top
	for _, e := range r.GetEntries() {
		if at = next.find(e.GetKey(), e.GetValue()); at == nil {
			return nil, ""
		}
		counted := entry{e.GetKey(), e.GetValue()}
		if at.Shared {
			counted.value = at.Value
		}
		entries, next = append(entries, counted), &at.next
	}
	return at, keyOfEntries(entries)
}

// keyOf is the key of a descriptor that brings its limit along: its entries.
func keyOf(r *ratelimit.RateLimitDescriptor) string {
	var entries []entry
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

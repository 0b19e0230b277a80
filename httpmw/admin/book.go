package admin

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// mostPolicies bounds the names that are distinguished. However names are
// chosen, all others are counted together.
const mostPolicies = 64

// others is the name of all policies beyond the bound. No policy can have it:
// names are at most longestName bytes, and not empty.
const others = ""

// book finds the series of a policy. Readers do not lock; the map is replaced
// when a name comes in.
type book struct {
	names  atomic.Pointer[map[string]*series]
	adding sync.Mutex
	full   atomic.Uint32 // until this second there is no use in trying to add
	rest   *series
}

func (b *book) init() {
	b.names.Store(&map[string]*series{})
	b.rest = &series{name: others}
}

func (b *book) find(name string, now uint32) *series {
	if s, ok := (*b.names.Load())[name]; ok {
		return s
	}
	return b.add(name, now)
}

func (b *book) add(name string, now uint32) *series {
	if name == "" || len(name) > longestName || b.full.Load() >= now {
		return b.rest
	}
	b.adding.Lock()
	defer b.adding.Unlock()
	was := *b.names.Load()
	if s, ok := was[name]; ok {
		return s
	}
	names := maps.Clone(was)
	if len(names) >= mostPolicies {
		maps.DeleteFunc(names, func(_ string, s *series) bool { return s.idle(now) })
	}
	if len(names) >= mostPolicies {
		b.full.Store(now)
		return b.rest
	}
	s := &series{name: strings.Clone(name)}
	s.last.Store(now)
	names[s.name] = s
	b.names.Store(&names)
	return s
}

// all returns every series that has a name or anything to tell, by name.
func (b *book) all(now uint32) []*series {
	all := slices.SortedFunc(maps.Values(*b.names.Load()), func(a, b *series) int { return strings.Compare(a.name, b.name) })
	if b.rest.last.Load() > 0 && !b.rest.idle(now) {
		all = append(all, b.rest)
	}
	return all
}

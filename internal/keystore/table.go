package keystore

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/interleave"
)

// table keeps one word for each key, and a value where V is not struct{}, in
// memory that grows with the keys up to a bound, and without background work.
//
// It is a hash table that grows by one segment at a time (extendible hashing:
// Fagin, Nievergelt, Pippenger, Strong 1979). The leading bits of a key's hash
// pick an entry of the directory, and that its segment. When a new key finds no
// room in its segment, half of the segment's keys move to a new one, in some
// microseconds; all other keys go on meanwhile. The first segment is small until then.
//
// A key keeps its slot for a second after it has expired, as long as the table may
// grow: a decision that inserts its key takes twice the instructions of one that finds
// it (BenchmarkKeyed/allow/expired).
//
// At the bound a new key replaces the one of the 16 in its two groups with the
// least debt, or it is denied: see [Config]. So a flood of new keys evicts the
// newest ones, and a key with more debt than 15 others keeps its state.
type table[V any] struct {
	maxKeys  int
	seed     maphash.Seed
	groups   uint32                       // of a segment, but for a first one of smallGroups
	depth    uint8                        // most leading bits that pick a segment
	evicts   bool                         // see Config
	segments atomic.Pointer[directory[V]] // nil: no key has arrived
	full     atomic.Uint64
	growing  sync.Mutex
}

// lingering is how long an expired key keeps its slot.
const lingering = int64(time.Second) * TicksPerNano

// directory points to the segments by the leading bits of a hash. A segment
// that needs fewer bits has several entries side by side.
type directory[V any] struct {
	shift   uint8 // 63 less the number of bits
	entries []entry[V]
}

// entry is a segment and, for a large one, its slots: with 500 segments reading them there would
// often cost another cache miss.
type entry[V any] struct {
	large   atomic.Pointer[[mostGroups * groupSize]slot]
	segment atomic.Pointer[segment[V]]
}

func (e *entry[V]) store(g *segment[V]) {
	e.segment.Store(g)
	if g.groups == mostGroups {
		e.large.Store((*[mostGroups * groupSize]slot)(g.slots))
	}
}

func (t *table[V]) init(c Config) {
	t.seed, t.maxKeys, t.evicts = newSeed(), c.MaxKeys, c.Evict
	slots := (4*uint64(c.MaxKeys) + 2) / 3 // at three quarters full, both groups of a key are hardly ever full
	for slots>>t.depth > mostGroups*groupSize {
		t.depth++
	}
	t.groups = mostGroups
	if t.depth == 0 {
		t.groups = uint32(max((slots+groupSize-1)/groupSize, 2))
	}
}

// begin makes the first segment.
func (t *table[V]) begin() *directory[V] {
	t.growing.Lock()
	defer t.growing.Unlock()
	if d := t.segments.Load(); d != nil {
		return d
	}
	d := &directory[V]{63, make([]entry[V], 1)}
	d.entries[0].store(newSegment[V](smallGroups, 0))
	t.segments.Store(d)
	return d
}

// common is the seed of the tables that [Alike] makes.
var common atomic.Pointer[maphash.Seed]

// Alike runs f, in which tables are made with one seed: equal keys share a slot or an account in
// all of them or in none. A test that compares two limits needs it, because a refund weighs less
// where another key of the account was refunded.
func Alike(f func()) {
	seed := maphash.MakeSeed()
	common.Store(&seed)
	defer common.Store(nil)
	f()
}

func newSeed() maphash.Seed {
	if seed := common.Load(); seed != nil {
		return *seed
	}
	return maphash.MakeSeed()
}

// hash identifies a key. The seed is secret, so that no one can construct
// colliding keys. 0 is the id of a free slot.
func (t *table[V]) hash(key string) uint64 {
	if id := maphash.String(t.seed, key); id != 0 {
		return id
	}
	return 1
}

// segment returns the segment where id currently belongs.
func (t *table[V]) segment(id uint64) *segment[V] { return t.entry(id).segment.Load() }

func (t *table[V]) entry(id uint64) *entry[V] {
	d := t.segments.Load()
	if d == nil {
		d = t.begin()
	}
	return &d.entries[id>>1>>(d.shift&63)]
}

// find returns the slot of id, or &noSlot.
func (t *table[V]) find(id uint64) *slot {
	e := t.entry(id)
	if large := e.large.Load(); large != nil {
		return find(large[:], mostGroups, id)
	}
	return e.segment.Load().find(id)
}

// moved reports whether id may have left g while the caller looked for it there.
func (t *table[V]) moved(g *segment[V], id uint64) bool {
	if g.splitting.Load() {
		g.mu.Lock() // until the move is over
		defer g.mu.Unlock()
		return true
	}
	return t.segment(id) != g
}

// room takes a slot of g for id and returns its index. The caller holds the mutex of g and stores
// the word. The result is lost if the key must look for its segment again.
func (s *Store[S, V]) room(g *segment[V], id uint64, now int64) (at int, r Result) {
	t := &s.keys
	r = Updated
	if at = g.take(id, max(now-lingering, 1)); at < 0 {
		if t.grow(g) || t.split(g, id) {
			return at, lost
		}
		at = g.take(id, now)
	}
	if at < 0 {
		if !t.evicts {
			t.full.Add(1)
			return at, Full
		}
		if at = g.evict(id); at < 0 {
			return at, lost
		}
		t.full.Add(1)
		evicted := g.slots[at].id.Load()
		s.unkeyed.accounts.open(evicted).invalidate(evicted)
		r = Evicted
	}
	g.slots[at].id.Store(id)
	return at, r
}

// mayGrow reports whether g grows before a key is evicted. The caller holds its mutex.
func (t *table[V]) mayGrow(g *segment[V]) bool {
	return len(g.slots) < int(t.groups)*groupSize || g.depth < t.depth
}

// grow replaces a small segment by one of the usual size, which has room for all of its keys: each
// goes to its first group. The caller holds the mutex of g. The slots of g keep their tombstones,
// and g is unused.
func (t *table[V]) grow(g *segment[V]) bool {
	if len(g.slots) == int(t.groups)*groupSize {
		return false
	}
	large := newSegment[V](t.groups, g.depth)
	g.splitting.Store(true)
	for i := range g.slots {
		if id := g.slots[i].id.Load(); id != 0 {
			g.move(i, large, large.take(id, 1))
			interleave.Point()
		}
	}
	t.publish(large, 0)
	g.splitting.Store(false)
	return true
}

// split moves half of the keys of g to a new segment, those with the next bit of
// the hash set, unless the table may not grow. The caller holds the mutex of g,
// and id belongs there.
//
// A key that moves is first in neither segment, then in the new one only. A reader
// that does not find it meanwhile waits for the mutex; see moved.
func (t *table[V]) split(g *segment[V], id uint64) bool {
	if g.depth == t.depth {
		return false
	}
	half := newSegment[V](t.groups, g.depth+1)
	bit := uint64(1) << (63 - g.depth)
	g.splitting.Store(true)
	for i := range g.slots {
		if g.slots[i].id.Load()&bit != 0 {
			g.move(i, half, i)
			interleave.Point()
		}
	}
	t.publish(half, (id|bit)>>(63-g.depth)<<(63-g.depth))
	g.depth++
	for i := range g.slots {
		if s := &g.slots[i]; s.id.Load()&bit != 0 {
			s.id.Store(0) // first: no reader takes the word for the key's
			s.word.Store(0)
		}
	}
	g.splitting.Store(false)
	return true
}

// move moves the key in slot i to slot j of another segment, and leaves the tombstone.
// A value in use is waited for.
func (g *segment[V]) move(i int, to *segment[V], j int) {
	s := &g.slots[i]
	word := s.word.Load()
	for tries := 0; word == locked || !s.word.CompareAndSwap(word, tombstone); tries++ {
		spin(tries)
		word = s.word.Load()
	}
	to.values[j], g.values[i] = g.values[i], to.values[j]
	to.slots[j].id.Store(s.id.Load())
	to.slots[j].word.Store(word)
}

// publish enters g as the segment of the ids that begin as first does.
func (t *table[V]) publish(g *segment[V], first uint64) {
	t.growing.Lock()
	defer t.growing.Unlock()
	d := t.segments.Load()
	if 63-d.shift < g.depth {
		d = d.doubled()
	}
	from, n := first>>1>>d.shift, uint64(1)<<(63-d.shift-g.depth)
	for i := range d.entries[from:][:n] {
		d.entries[from:][i].store(g)
	}
	t.segments.Store(d)
}

func (d *directory[V]) doubled() *directory[V] {
	twice := &directory[V]{d.shift - 1, make([]entry[V], 2*len(d.entries))}
	for i := range twice.entries {
		twice.entries[i].store(d.entries[i/2].segment.Load())
	}
	return twice
}

// all calls f for each slot in use. Keys that move meanwhile may be passed over
// or seen twice.
func (t *table[V]) all(f func(id uint64, word int64)) {
	d := t.segments.Load()
	if d == nil {
		return
	}
	var before *segment[V]
	for i := range d.entries {
		g := d.entries[i].segment.Load()
		if g == before {
			continue
		}
		before = g
		for i := range g.slots {
			if id, w := g.slots[i].id.Load(), g.slots[i].word.Load(); id != 0 && w != tombstone {
				f(id, w)
			}
		}
	}
}

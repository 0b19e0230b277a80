package keyfunc

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
)

// internSlots bounds the memory: 8 KiB of pointers, and at most as many
// entries of about 100 bytes each.
const internSlots = 1 << 10

// interned remembers the texts of addresses seen lately, so that a client
// which comes again costs no allocation. Each address has one slot; two that
// share it push each other out, which costs an allocation and nothing else.
// So there is nothing for a flood of addresses to break.
type interned struct {
	slots [internSlots]atomic.Pointer[internEntry]
}

// internEntry never changes once it is published.
type internEntry struct {
	addr netip.Addr
	text string
}

// text is write(a), remembered. For one table, write must depend on a alone.
func (t *interned) text(a netip.Addr, write func(netip.Addr) string) string {
	slot := &t.slots[slotOf(a)]
	if e := slot.Load(); e != nil && e.addr == a {
		return e.text
	}
	e := &internEntry{addr: a, text: write(a)}
	slot.Store(e)
	return e.text
}

// slotOf mixes both halves of the address with the constants of SplitMix64.
func slotOf(a netip.Addr) uint64 {
	b := a.As16()
	x := binary.BigEndian.Uint64(b[:8])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(b[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x ^ x>>31) % internSlots
}

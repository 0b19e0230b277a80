package keyfunc

import (
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
	addr ip
	text string
}

// get is the text of a, or "".
func (t *interned) get(a ip) string {
	if e := t.slots[a.slot(internSlots)].Load(); e != nil && e.addr == a {
		return e.text
	}
	return ""
}

// put remembers the text of a.
func (t *interned) put(a ip, text string) {
	t.slots[a.slot(internSlots)].Store(&internEntry{addr: a, text: text})
}

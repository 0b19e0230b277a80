package algo

// ClientWaiter is a [Releaser] of a limiter that distinguishes work from waiting for the
// client: while a body arrives, a response is read or a stream is open, the
// service does nothing for the request, however long that takes.
type ClientWaiter interface {
	Releaser
	// AwaitClient follows the begin (waits is true) and the end of a wait. Calls
	// alternate, before Release, and may coincide with Settle: they must neither
	// change h nor read h.N.
	AwaitClient(h *Handle, waits bool)
}

// AwaitClient reports that the work begins to wait for its client (waits is
// true), or goes on. Calls alternate; a wait must end before Release. Adaptive
// limits do not count work in flight while it waits for its client; other limits
// ignore the call, as does a denied lease.
//
// Unlike the other methods it may be called concurrently with Settle, from
// another goroutine, but not at the same time as Release.
func (l *Lease) AwaitClient(waits bool) {
	if w, ok := l.releaser.(ClientWaiter); ok {
		w.AwaitClient(&l.handle, waits)
	}
}

// AwaitClient implements [ClientWaiter].
func (c *compositeLease) AwaitClient(_ *Handle, waits bool) {
	for i := range c.leases {
		c.leases[i].AwaitClient(waits)
	}
}

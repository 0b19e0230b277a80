package algo

import "time"

// ClientWaiter is a [Releaser] of a limiter that distinguishes work from waiting for the
// client: while a body arrives, a response is read or a stream is open, the
// service does nothing for the request, however long that takes.
type ClientWaiter interface {
	Releaser
	// AwaitClient follows the begin (waits is true) and the end of a wait. Calls
	// alternate, end before Release, and may coincide with Settle: they must neither
	// change h nor read h.N.
	AwaitClient(h *Handle, waits bool)
	// ReleaseAfterWait is called in place of Release for work that has waited for its
	// client, with the time that it waited in all.
	ReleaseAfterWait(h Handle, o Outcome, waited time.Duration)
}

// AwaitClient reports that the work begins to wait for its client (waits is
// true), or goes on. Repeated calls count once, and Release ends a wait. Adaptive
// limits do not count work in flight while it waits for its client; other limits
// ignore the call, as does a denied lease.
//
// Unlike the other methods it may be called concurrently with Settle, from
// another goroutine, but not at the same time as Release. The first call must come
// before that: AwaitClient(false) does.
func (l *Lease) AwaitClient(waits bool) {
	switch r := l.releaser.(type) {
	case *compositeLease:
		if r.generation == l.handle.At {
			for i := range r.leases {
				r.leases[i].AwaitClient(waits)
			}
		}
	case *clientWait:
		r.set(&l.handle, waits)
	case ClientWaiter:
		w := &clientWait{ClientWaiter: r}
		l.releaser = w
		w.set(&l.handle, waits)
	}
}

// clientWait is the limiter's side of a lease that may wait for its client. It is apart from
// the lease, which Settle reads meanwhile and most requests hold without waiting.
type clientWait struct {
	ClientWaiter
	waits  bool
	since  time.Time     // begin of the wait
	waited time.Duration // in earlier waits
}

func (w *clientWait) set(h *Handle, waits bool) {
	if w.waits == waits {
		return
	}
	if w.waits = waits; waits {
		w.since = time.Now()
	} else {
		w.waited += time.Since(w.since)
	}
	w.AwaitClient(h, waits)
}

// Release ends a wait too.
func (w *clientWait) Release(h Handle, o Outcome) {
	w.set(&h, false)
	w.ReleaseAfterWait(h, o, w.waited)
}

// About is about the limit; see needsRelease.
func (w *clientWait) About() (d Description) {
	if limit, ok := w.ClientWaiter.(Describer); ok {
		d = limit.About()
	}
	return d
}

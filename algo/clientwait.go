package algo

import "time"

// ClientWaiter is a [Releaser] of a limiter that distinguishes work from waiting for the client:
// while a body arrives, a client reads a response or a stream is open, the service does nothing for
// the request.
type ClientWaiter interface {
	Releaser
	// AwaitClient follows the begin (waits is true) and the end of a wait. Calls alternate, end before
	// Release, and may coincide with Settle: do not change h or read h.N.
	AwaitClient(h *Handle, waits bool)
	// ReleaseAfterWait replaces Release for work that waited for its client, for waited in all.
	ReleaseAfterWait(h Handle, o Outcome, waited time.Duration)
}

// AwaitClient reports that the work begins to wait for its client (waits is true), or continues.
// Repeated calls count once, and Release ends a wait. Adaptive limits do not count work in flight
// while it waits for its client; other limits ignore the call, as does a denied lease.
//
// Unlike the other methods it may run concurrently with Settle, but not with Release. The first
// call, such as AwaitClient(false), must come before any concurrent one.
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

// clientWait is the limiter's side of a lease that may wait for its client. It is not part of the
// lease, because Settle reads that concurrently and most requests never wait.
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

// About describes the limit; see needsRelease.
func (w *clientWait) About() (d Description) {
	if limit, ok := w.ClientWaiter.(Describer); ok {
		d = limit.About()
	}
	return d
}

package algo

// MeterLease goes on with the charge of lease as a [Meter], which charges the
// work's use beyond it to l, in blocks of at least block units, 0 or more. l is
// the limiter that has granted the lease, and the charges are to the lease's key.
// Another part of the program, such as a middleware, releases the lease, and not
// before the Meter is closed. Release with [Canceled] gives back the first charge
// alone, not the blocks after it.
//
// For a lease that charges nothing, because the request passed unlimited, the Meter
// admits everything and charges nothing. A denied lease makes a denied Meter.
func MeterLease(l Limiter, lease *Lease, block int64) *Meter {
	m := &Meter{Decision: lease.Decision, block: max(block, 0)}
	m.Delay = 0 // the acquirer of the lease has slept for it
	switch key, n, ok := lease.charge(); {
	case ok:
		m.limiter, m.key, m.charged, m.last = l, key, n, hold{borrowed: lease, n: n}
	case lease.Allowed || lease.Reason == Admitted:
		m.limiter, m.Allowed = unlimited{}, true
	}
	return m
}

// charge returns the key and the units that are charged, of one of several limits
// in the same unit; false if there is nothing to settle.
func (l *Lease) charge() (key string, n int64, ok bool) {
	c, several := l.releaser.(*compositeLease)
	switch {
	case l.releaser == nil || several && c.generation != l.handle.At:
		return "", 0, false
	case !several:
		return l.handle.Key, l.handle.N, true
	}
	from := 0
	if i := int(l.handle.State[0]); i > 0 {
		from, _ = c.part(i - 1)
	}
	return c.leases[from].charge()
}

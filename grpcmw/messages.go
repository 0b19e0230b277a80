package grpcmw

import (
	"context"
	"sync"

	"github.com/sluice-go/sluice/algo"
)

// messages charges one stream, on either side of it: its opening and its
// messages, as the mode says.
type messages struct {
	ctx     context.Context
	gate    *gate
	method  string
	key     string
	limited bool        // false: the stream passes, in all modes
	stopped func(error) // told why the stream must end; must not wait

	mu      sync.Mutex // a goroutine may still receive when the stream ends
	inWork  algo.Lease // of the message that was received last
	ended   bool
	refused error // why the stream must end
}

// open finds the key, once for the stream and its messages, and charges the
// opening. The error is what to answer.
func (p *messages) open(lease *algo.Lease) error {
	g := p.gate
	key, v, err := g.identify(p.ctx, p.method)
	if err != nil || v != charge {
		return g.unasked(p.ctx, p.method, v, err)
	}
	p.limited, p.key = true, key
	if !g.mode.has(OnOpen) {
		return nil
	}
	n := g.weigh(p.ctx, p.method, nil)
	return g.charge(p.ctx, lease, &ask{method: p.method, key: key, n: n, patience: g.maxWait, opening: true})
}

// receive charges a message after next has read it. Once a message is refused,
// in either direction, none passes any more.
func (p *messages) receive(m any, next func(any) error) error {
	if !p.charges(PerRecv | PerSend) {
		return next(m)
	}
	p.finish()
	if err := p.refusal(); err != nil {
		return err
	}
	if err := next(m); err != nil || !p.charges(PerRecv) {
		return err
	}
	var lease algo.Lease
	defer lease.Release(algo.Ignored) // does nothing once it is handed over
	if err := p.admit(&lease, m); err != nil {
		return err
	}
	p.begin(&lease)
	return nil
}

// send charges a message before next sends it. One that cannot be sent any more
// is given back.
func (p *messages) send(m any, next func(any) error) error {
	if !p.charges(PerRecv | PerSend) {
		return next(m)
	}
	if err := p.refusal(); err != nil {
		return err
	}
	if !p.charges(PerSend) {
		return next(m)
	}
	var lease algo.Lease
	defer lease.Release(algo.Ignored)
	if err := p.admit(&lease, m); err != nil {
		return err
	}
	err := next(m)
	if err != nil {
		lease.Release(algo.Canceled) // it was not sent
	}
	return err
}

func (p *messages) charges(part StreamMode) bool { return p.limited && p.gate.mode.has(part) }

func (p *messages) admit(lease *algo.Lease, m any) error {
	g := p.gate
	n := g.weigh(p.ctx, p.method, m)
	err := g.charge(p.ctx, lease, &ask{method: p.method, key: p.key, n: n, patience: g.backPressure})
	if err != nil {
		p.stop(err)
	}
	return err
}

// stop ends the stream for err. Whoever sees that it must end, sees all that
// follows from it.
func (p *messages) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = err
	}
	p.stopped(err)
}

// refusal is why the stream must end, nil if it need not.
func (p *messages) refusal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// begin keeps the lease of a received message while it is worked on. When the
// stream has ended meanwhile nobody works on it, and the lease stays behind.
func (p *messages) begin(lease *algo.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.inWork, *lease = *lease, algo.Lease{}
	}
}

// finish ends the work on the message received last.
func (p *messages) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inWork.Release(algo.Ignored)
}

// end is finish for good.
func (p *messages) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.inWork.Release(algo.Ignored)
}

package grpcmw

import (
	"sync"

	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
)

// messages charges one stream: its opening and its messages, as the mode selects.
type messages struct {
	call    // without a message
	i       *interceptor
	ps      *policies
	keys    verdict     // of the opening, which hold for its messages
	limited bool        // false: the stream passes, in all modes
	stopped func(error) // gets the reason why the stream must end; must not wait

	mu      sync.Mutex // a goroutine may still receive when the stream ends
	inWork  algo.Lease // of the message that was received last
	ended   bool
	refused error // why the stream must end
}

// open finds the keys, once for the stream and its messages, and charges the
// opening. The error is the answer.
func (p *messages) open(lease *algo.Lease) (trailer metadata.MD, err error) {
	if p.limited = p.ps.Keys(p.ctx, p.call, &p.keys, nil, nil); p.limited && !p.i.Own.mode.has(OnOpen) {
		p.ctx = p.ps.WithLease(p.ctx, lease, new(verdict))
		return nil, nil
	}
	v := p.keys.Again()
	if p.limited {
		p.ps.Charge(p.ctx, p.call, lease, &v, 0)
	}
	ctx, trailer, err := p.i.admitted(p.call, lease, p.ps, &v)
	if err == nil {
		p.ctx = ctx
	}
	return trailer, err
}

// receive charges a message after next has read it. Once a message is refused,
// in either direction, no further message passes.
func (p *messages) receive(m any, next func(any) error) error {
	if !p.charges(PerRecv | PerSend) {
		return next(m)
	}
	p.endMessage()
	if err := p.endReason(); err != nil {
		return err
	}
	if err := next(m); err != nil || !p.charges(PerRecv) {
		return err
	}
	var lease algo.Lease
	defer lease.Release(algo.Succeeded | algo.Untimed) // does nothing once it is handed over
	if err := p.charge(&lease, m); err != nil {
		return err
	}
	p.begin(&lease)
	return nil
}

// send charges a message before next sends it, and refunds it if next fails.
func (p *messages) send(m any, next func(any) error) error {
	if !p.charges(PerRecv | PerSend) {
		return next(m)
	}
	if err := p.endReason(); err != nil {
		return err
	}
	if !p.charges(PerSend) {
		return next(m)
	}
	var lease algo.Lease
	defer lease.Release(algo.Succeeded | algo.Untimed)
	if err := p.charge(&lease, m); err != nil {
		return err
	}
	err := next(m)
	if err != nil {
		lease.Release(algo.Canceled) // it was not sent
	}
	return err
}

func (p *messages) charges(part StreamMode) bool { return p.limited && p.i.Own.mode.has(part) }

func (p *messages) charge(lease *algo.Lease, m any) error {
	err := p.chargeMessage(lease, m)
	if err != nil {
		p.stop(err)
	}
	return err
}

func (p *messages) chargeMessage(lease *algo.Lease, m any) error {
	c, v := p.call, p.keys.Again()
	c.msg = m
	p.ps.Charge(p.ctx, c, lease, &v, p.i.Own.backPressure)
	return p.i.answer(c, p.ps, &v, false)
}

// stop ends the stream for err. It runs stopped under p.mu, so that a goroutine that
// sees the end also sees its effects.
func (p *messages) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = err
	}
	p.stopped(err)
}

// endReason returns why the stream must end; nil if it may continue.
func (p *messages) endReason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// begin keeps the lease of a received message while the handler works on it. If the
// stream has ended meanwhile, the caller keeps the lease.
func (p *messages) begin(lease *algo.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.inWork, *lease = *lease, algo.Lease{}
	}
}

// endMessage ends the work on the message received last.
func (p *messages) endMessage() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inWork.Release(algo.Succeeded | algo.Untimed)
}

// end ends the last message, and prevents further ones.
func (p *messages) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.inWork.Release(algo.Succeeded | algo.Untimed)
}

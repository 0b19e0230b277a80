package distributed_test

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/distributed"
)

// gauge watches one instance: the events of its hook, and the calls that leave
// its client while the breaker is open. Scripts count where they leave, so those
// that reach no server count too. These do not count: setting up a connection,
// the second sending of a script that the server has lost (eval), and requests
// that were queued before the breaker opened, whose callers go on within the
// settling time.
type gauge struct {
	settle time.Duration
	mu     sync.Mutex
	state  distributed.Phase
	since  time.Time
	open   time.Duration
	frozen bool
	calls  int

	opened, keyFaults, mixed int // since mark
}

func (m *gauge) event(e distributed.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case distributed.KeyFault:
		m.keyFaults++
	case distributed.MixedParameters:
		m.mixed++
	case distributed.BreakerChanged:
		m.account()
		if m.state = e.Phase; e.Phase == distributed.PhaseOpen {
			m.opened++
		}
	}
}

// account adds the time since the last change. The caller holds m.mu.
func (m *gauge) account() {
	now := time.Now()
	if m.state == distributed.PhaseOpen && !m.frozen {
		m.open += now.Sub(m.since)
	}
	m.since = now
}

func (m *gauge) mark() { m.mu.Lock(); defer m.mu.Unlock(); m.opened, m.keyFaults, m.mixed = 0, 0, 0 }

// counts returns how often the breaker has opened, keys were at fault, and parameters
// differed, since mark.
func (m *gauge) counts() (opened, keyFaults, mixed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opened, m.keyFaults, m.mixed
}

// freeze ends the counting of calls.
func (m *gauge) freeze() { m.mu.Lock(); defer m.mu.Unlock(); m.account(); m.frozen = true }

func (m *gauge) now() distributed.Phase { m.mu.Lock(); defer m.mu.Unlock(); return m.state }

func (m *gauge) intervals() float64 { return float64(m.open) / float64(probeEvery) }

func (m *gauge) call(cmd redis.Cmder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cmd.Name() == "evalsha" && !m.frozen && m.state == distributed.PhaseOpen && time.Since(m.since) > m.settle {
		m.calls++
	}
}

// DialHook makes the meter a hook of go-redis; dialling is not counted.
func (m *gauge) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (m *gauge) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { m.call(cmd); return next(ctx, cmd) }
}

func (m *gauge) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { m.call(cmds[0]); return next(ctx, cmds) }
}

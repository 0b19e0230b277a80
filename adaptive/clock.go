package adaptive

import (
	"time"

	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// WithClock makes a limiter and its strategy read the time from now, such as the clock of a test;
// see [algo.Clock]. Waits in a queue, deadlines of contexts, the scheduler and processor time stay
// real, so [Default] and [RunQueue] learn nothing while now stands still. [PerKey] and package
// throttle do not take it.
func WithClock(now func() time.Time) Option {
	if now == nil {
		panic("adaptive: WithClock needs a function")
	}
	return wiring.With("WithClock", now)
}

// clocked is a machine with another clock, which continues from the machine's current time.
type clocked struct {
	machine.Machine
	began int64
	clock keystore.Clock
}

func (c *clocked) Now() int64 { return c.began + int64(keystore.ToDuration(c.clock.Now())) }

// followClock makes the limiter and its strategies read the time from now.
func (l *Limiter) followClock(now func() time.Time) {
	l.machine = &clocked{l.machine, l.machine.Now(), keystore.StartClock(now)}
	for _, s := range l.clocked {
		s.On(l.machine)
	}
}

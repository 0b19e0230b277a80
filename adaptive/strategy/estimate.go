package strategy

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// estimate holds the limit of a strategy that learns from each sample. It skips a sample that
// arrives during another one: no request waits for a statistic.
type estimate struct {
	wiring.Owned
	machine  machine.Machine
	name     string
	min, max float64
	limit    atomic.Int64 // the result of Limit

	mu    sync.Mutex
	value float64
}

// init sets the first limit: the configured one, which must be within the limits, or the nearest
// value to 20 within them.
func (e *estimate) init(constructor string, most int, opts []adaptive.Option, takes ...string) (wiring.Set, error) {
	set, err := wiring.Read(constructor, opts, append(takes, "WithLimits", "WithInitial")...)
	if err != nil {
		return nil, err
	}
	l, err := set.Limits(constructor, wiring.Limits{Min: learningFloor, Max: most})
	if err != nil {
		return nil, err
	}
	start := wiring.Get(set, "WithInitial", min(max(20, l.Min), l.Max))
	if start < l.Min || start > l.Max {
		return nil, fmt.Errorf("%s: initial limit is %d, want %d to %d", constructor, start, l.Min, l.Max)
	}
	e.machine, e.name = set.Machine(), strings.ToLower(constructor)
	e.min, e.max = float64(l.Min), float64(l.Max)
	e.set(float64(start))
	return set, nil
}

func (e *estimate) set(v float64) {
	e.value = min(max(v, e.min), e.max)
	e.limit.Store(int64(e.value))
}

func (e *estimate) Limit() int            { return int(e.limit.Load()) }
func (e *estimate) MaxLimit() int         { return int(e.max) }
func (e *estimate) State() adaptive.State { return adaptive.State{Name: e.name, Limit: e.Limit()} }

// unused reports whether less than half of the limit was in flight. Such a sample does not show
// whether more would be too many.
func (e *estimate) unused(s adaptive.Sample) bool { return float64(s.InFlight)*2 < e.value }

package sim

import (
	"fmt"
	"math/rand/v2"
)

// Run plays a scenario with a strategy. The same seed gives the same requests
// to every strategy as long as no request is rejected.
func Run(s Scenario, by Strategy, seed uint64) (Result, error) {
	w, err := play(s, by, seed)
	if err != nil {
		return Result{}, err
	}
	return w.result(), nil
}

// play runs a scenario and returns the world as it is then.
func play(s Scenario, by Strategy, seed uint64) (*world, error) {
	w := &world{
		Scenario: s,
		rng:      rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)),
		chance:   rand.New(rand.NewPCG(seed, 0xd1342543de82ef95)),
	}
	if w.procs = s.Procs; w.procs == 0 {
		w.procs = s.Cores
	}
	w.cost = costs{int64(s.Admit), int64(s.Reject), int64(s.Admit) / 4}
	w.server = newServer(s.Model, w)
	w.stats = newStats(s.Load.End())
	if s.Tenants != nil {
		w.crowd, w.stats.tenants = NewCrowd(s.Tenants), make([]use, len(s.Tenants))
		for i := range w.stats.tenants {
			w.stats.tenants[i].seconds = make([]float64, s.Load.End()/sec+1)
		}
	}
	w.agenda.add(0, look, nil)
	w.plan()

	gate, err := by.gate(w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", by.Name, err)
	}
	w.gate = gate

	w.run()
	return w, nil
}

func newServer(model any, w *world) server {
	switch m := model.(type) {
	case Sharing:
		return newSharing(m, w)
	case Workers, Remote:
		p := newSharing(Sharing{}, w)
		p.workers = true
		_, p.remote = model.(Remote)
		return p
	case GoScheduler:
		return newGoSched(m, w)
	}
	panic(fmt.Sprintf("sim: no such model: %T", model))
}

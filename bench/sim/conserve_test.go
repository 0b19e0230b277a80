package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// models are all servers and hosts, each once.
func models() map[string]Scenario {
	all := map[string]Scenario{}
	for name, model := range map[string]any{
		"sharing": Sharing{}, "collapse": Sharing{Collapse: .01}, "workers": Workers{}, "remote": Remote{},
		"go": GoScheduler{}, "go unmonitored": GoScheduler{Unmonitored: true},
	} {
		for _, cores := range []int{1, 3} {
			for _, host := range []Host{
				{Cores: cores}, {Cores: cores, Neighbour: .35},
				{Cores: cores, Pauses: Pauses{300 * ms, 20 * ms, 80 * ms}},
			} {
				sc := Scenario{
					Model: model, Host: host, Service: Service{CPU: 3 * ms, Rare: 25 * ms, RareEach: 10, IO: 7 * ms},
					Admit: 25 * us, Reject: 13 * us, SLO: 200 * ms, From: 3 * sec, To: 6 * sec,
					Load: append(Step(3, 3*sec, 6*sec, 8*sec), Stretch{1000 * sec, 0, 0}),
				}
				if _, remote := model.(Remote); remote && host.Pauses.Every > 0 {
					continue // the pool does not stop with the service
				}
				all[fmt.Sprintf("%s %+v", name, host)] = sc
			}
		}
	}
	quota := Scenario{
		Model: Sharing{Quota: 1.5}, Host: Host{Cores: 4}, Service: Service{CPU: 3 * ms}, SLO: 200 * ms,
		From: 3 * sec, To: 6 * sec, Load: append(Step(3, 3*sec, 6*sec, 8*sec), Stretch{1000 * sec, 0, 0}),
	}
	all["quota"] = quota
	return all
}

// TestNothingIsLost: after the load has ended, the number of requests that arrived and
// that left are equal, nothing is in flight, and the used processor time is the
// processor time of the requests.
func TestNothingIsLost(t *testing.T) {
	for name, sc := range models() {
		t.Run(name, func(t *testing.T) {
			for _, by := range []Strategy{None(), Fixed(9), Queued(4), Trial()} {
				w, err := play(sc, by, 5)
				require.NoError(t, err)
				all := w.stats.sum(0, sc.Load.End())
				require.Positive(t, all.done)
				require.Equal(t, all.arrived, all.done+all.rejected, by.Name)
				require.Zero(t, w.server.runnable(), by.Name)
				if g, ok := w.gate.(*limited); ok {
					require.Zero(t, g.limiter.InFlight())
				}
				if _, remote := sc.Model.(Remote); remote {
					continue // its own processor does none of the work
				}
				work := float64(w.stats.work)
				if s, ok := sc.Model.(Sharing); ok && s.Collapse > 0 {
					require.Greater(t, float64(w.server.cpu()), work, "contention uses processor time too")
					continue
				}
				require.InEpsilon(t, work, float64(w.server.cpu()), 1e-3, by.Name)
			}
		})
	}
}

// TestNoMoreThanTheCores: whatever the load, the processor time between two
// instants is at most the processor time of the host.
func TestNoMoreThanTheCores(t *testing.T) {
	for name, sc := range models() {
		if _, remote := sc.Model.(Remote); remote {
			continue
		}
		t.Run(name, func(t *testing.T) {
			probe := &burnt{}
			_, err := play(sc, probe.strategy(), 5)
			require.NoError(t, err)
			share := (1 - sc.Neighbour) * float64(sc.Cores)
			if s, ok := sc.Model.(Sharing); ok && s == (Sharing{Quota: 1.5}) {
				share = 1.5
			}
			busiest := 0.0
			for i := 10; i < len(probe.used); i++ {
				busiest = max(busiest, float64(probe.used[i]-probe.used[i-10])/float64(sec))
			}
			require.LessOrEqual(t, busiest, share*1.001)
			require.Greater(t, busiest, share*.6, "the step keeps it busy")
		})
	}
}

// burnt is an open gate that notes the processor time each time it is looked
// at.
type burnt struct {
	open
	w    *world
	used []int64
}

func (b *burnt) limit() int {
	b.used = append(b.used, b.w.server.cpu())
	return 0
}

func (b *burnt) strategy() Strategy {
	return Strategy{Name: "open", gate: func(w *world) (Gate, error) { b.w = w; return b, nil }}
}

// prioritized is a scenario with classes.
func prioritized() Scenario {
	s := Classic()[0]
	s.Priorities = true
	return s
}

// TestSameSeedSameRun: to the last bit, and another seed gives another run.
func TestSameSeedSameRun(t *testing.T) {
	for _, sc := range []Scenario{Classic()[0], Clients()[1], prioritized(), Servers()[4], Process(3, 5)} {
		for _, by := range append(Strategies(), None(), Fixed(20), Trial()) {
			sc := sc.shorten(20000)
			first, err := Run(sc, by, 1)
			require.NoError(t, err)
			again, err := Run(sc, by, 1)
			require.NoError(t, err)
			require.Equal(t, first, again, by.Name)
			other, err := Run(sc, by, 2)
			require.NoError(t, err)
			require.NotEqual(t, first, other, by.Name)
		}
	}
}

// TestPausesStopEverything: in a pause nothing is answered and the gate is not
// asked.
func TestPausesStopEverything(t *testing.T) {
	for _, model := range []any{Sharing{}, Workers{}, GoScheduler{}} {
		sc := Scenario{
			Model: model, Host: Host{Cores: 2, Pauses: Pauses{2 * sec, time.Second, time.Second}},
			Service: fixedWork, Load: Steady(.9, 60*sec), To: 60 * sec, SLO: sec,
		}
		w, err := play(sc, Fixed(5), 2)
		require.NoError(t, err)
		still := 0
		for _, b := range w.stats.bins {
			if b.done == 0 {
				still++
			}
		}
		// About a third of 600 bins, less those in which a pause begins or ends.
		require.InDelta(t, 600/3*9/10, still, 90)
	}
}

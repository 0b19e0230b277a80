package admin

import "github.com/sluice-go/sluice/algo"

// tableState is the table of keys of a limiter in this process.
type tableState struct {
	Keys       int      `json:"keys"`
	Capacity   int      `json:"capacity"`
	Overflowed uint64   `json:"overflowed"` // charges that found no place, since the start
	Origins    []origin `json:"origins"`    // of the newest keys, once it was full
}

// table is nil for a limiter that keeps no keys in this process.
func (p *policy) table() *tableState {
	s := algo.StatsOf(p.limiter)
	if s.Room == 0 {
		return nil
	}
	state := &tableState{s.Live, s.Room, s.Overflowed, []origin{}}
	if s.Overflowed > 0 && p.callers != nil {
		state.Origins = p.callers.origins()
	}
	return state
}

// Stats is the limiter's [algo.StatsOf], zero if it keeps no keys in this process.
func (c *Controlled) Stats() algo.Stats { return algo.StatsOf(c.limiter) }

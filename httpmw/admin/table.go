package admin

import "github.com/sluice-go/sluice/algo"

// keyTable is a limiter in memory that counts its keys.
type keyTable interface{ Stats() algo.Stats }

// tableState is the table of keys of a limiter in this process.
type tableState struct {
	Keys       int      `json:"keys"`
	Capacity   int      `json:"capacity"`
	Overflowed uint64   `json:"overflowed"` // charges that found no place, since the start
	Origins    []origin `json:"origins"`    // of the newest keys, once it was full
}

// table is nil for a limiter that keeps no keys in this process.
func (p *policy) table() *tableState {
	for one := range algo.Walk(p.limiter) {
		t, ok := one.(keyTable)
		if !ok {
			continue
		}
		s := t.Stats()
		if s.Room == 0 {
			return nil
		}
		state := &tableState{s.Live, s.Room, s.Overflowed, []origin{}}
		if s.Overflowed > 0 && p.callers != nil {
			state.Origins = p.callers.origins()
		}
		return state
	}
	return nil
}

// Stats is the limiter's Stats, zero if it keeps no keys in this process.
func (c *Controlled) Stats() algo.Stats {
	if t, ok := c.limiter.(keyTable); ok {
		return t.Stats()
	}
	return algo.Stats{}
}

package admin

import "github.com/sluice-go/sluice/algo"

// keyTable is a limiter in memory that counts its keys.
type keyTable interface {
	Len() int
	Cap() int
	Overflowed() uint64
}

// tableState is the table of keys of a limiter in this process.
type tableState struct {
	Keys       int    `json:"keys"`
	Capacity   int    `json:"capacity"`
	Overflowed uint64 `json:"overflowed"` // charges that found no place, since the start
}

// table is nil for a limiter that keeps no keys in this process.
func table(l algo.Limiter) *tableState {
	t, ok := l.(keyTable)
	if !ok || t.Cap() == 0 {
		return nil
	}
	return &tableState{t.Len(), t.Cap(), t.Overflowed()}
}

// Len is the limiter's Len, 0 if it keeps no keys in this process.
func (c *Controlled) Len() int {
	if t, ok := c.limiter.(keyTable); ok {
		return t.Len()
	}
	return 0
}

// Cap is the limiter's Cap, 0 if it keeps no keys in this process.
func (c *Controlled) Cap() int {
	if t, ok := c.limiter.(keyTable); ok {
		return t.Cap()
	}
	return 0
}

// Overflowed is the limiter's Overflowed, 0 if it keeps no keys in this
// process.
func (c *Controlled) Overflowed() uint64 {
	if t, ok := c.limiter.(keyTable); ok {
		return t.Overflowed()
	}
	return 0
}

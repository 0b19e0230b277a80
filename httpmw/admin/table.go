package admin

import "github.com/sluice-go/sluice/algo"

// keyTable is a limiter in memory that counts its keys.
type keyTable interface {
	Len() int
	Overflowed() uint64
}

// tableState is the table of keys of a limiter in this process.
type tableState struct {
	Keys       int    `json:"keys"`
	Overflowed uint64 `json:"overflowed"` // charges that found no place, since the start
}

// table is nil for a limiter that keeps no keys in this process.
func table(l algo.Limiter) *tableState {
	if c, ok := l.(*Controlled); ok {
		l = c.limiter
	}
	t, ok := l.(keyTable)
	if !ok {
		return nil
	}
	return &tableState{t.Len(), t.Overflowed()}
}

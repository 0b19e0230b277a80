package admission

import "github.com/sluice-go/sluice/algo"

// NewFields renders the items of a limiter.
func NewFields(name string, l algo.Limiter) *Fields {
	f := newFields(name, l)
	return &f
}

package live

import (
	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// NewOverload makes the overload protection that a file asks for; nil if it is
// off.
func NewOverload(o config.Overload) (*adaptive.Limiter, error) {
	if o.Off {
		return nil, nil
	}
	var opts []adaptive.Option
	if o.MaxInFlight > 0 {
		opts = append(opts, adaptive.WithLimits(1, o.MaxInFlight))
	}
	return adaptive.New(adaptive.Default(), opts...)
}

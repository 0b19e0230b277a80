package algo

import (
	"time"

	"github.com/sluice-go/sluice/internal/warning"
)

// ResetWarnings makes the next problem of a kind be logged again.
func ResetWarnings() {
	warnMixed.Reset()
	warning.NegativeUsage.Reset()
}

// The rare fields of a Spec as options, for tables of tests.

func MaxQueue(n int64) Option {
	return Option{"MaxQueue", func(s *Spec) { s.MaxQueue = n }}
}

func DelayAfter(n int64) Option {
	return Option{"DelayAfter", func(s *Spec) { s.DelayAfter = n }}
}

func NoDelay() Option {
	return Option{"NoDelay", func(s *Spec) { s.NoDelay = true }}
}

func Offset(d time.Duration) Option {
	return Option{"Offset", func(s *Spec) { s.Offset = d }}
}

func AlignedTo(t time.Time) Option {
	return Option{"AlignedTo", func(s *Spec) { s.AlignedTo = t.Round(0).UTC() }}
}

func Spread() Option {
	return Option{"Spread", func(s *Spec) { s.Spread = true }}
}

func ColdFactor(f float64) Option {
	return Option{"ColdFactor", func(s *Spec) { s.ColdFactor = f }}
}

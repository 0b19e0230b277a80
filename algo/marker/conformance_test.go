package marker_test

import (
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/marker"
)

func TestSRTCMConformance(t *testing.T) {
	runMarker(t, marker.Green, func(r algo.Rate, opts ...algo.Option) (marker.Marker, error) {
		return marker.NewSRTCM(r, r.Count, 7, opts...)
	})
}

func TestTRTCMConformance(t *testing.T) {
	runMarker(t, marker.Yellow, func(r algo.Rate, opts ...algo.Option) (marker.Marker, error) {
		return marker.NewTRTCM(algo.Per(1, r.Period), 1, r, r.Count, opts...)
	})
	runMarker(t, marker.Green, func(r algo.Rate, opts ...algo.Option) (marker.Marker, error) {
		return marker.NewTRTCM(r, r.Count, algo.Per(2*r.Count, r.Period), 2*r.Count, opts...)
	})
}

func TestRFC4115Conformance(t *testing.T) {
	runMarker(t, marker.Green, func(r algo.Rate, opts ...algo.Option) (marker.Marker, error) {
		return marker.NewRFC4115(r, r.Count, algo.PerSecond(5), 5, opts...)
	})
	runMarker(t, marker.Yellow, func(r algo.Rate, opts ...algo.Option) (marker.Marker, error) {
		return marker.NewRFC4115(r, r.Count, algo.PerSecond(5), 0, opts...)
	})
}

// runMarker runs the kit on a limiter over a marker that passes the rate's
// count at once, and the rate.
func runMarker(t *testing.T, pass marker.Color, make func(algo.Rate, ...algo.Option) (marker.Marker, error)) {
	t.Helper()
	t.Run(pass.String(), func(t *testing.T) {
		algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
			m, err := make(r, opts...)
			if err != nil {
				return nil, err
			}
			return marker.Limit(m, pass), nil
		}, algotest.Bound{Units: algotest.BurstPlusRate})
	})
}

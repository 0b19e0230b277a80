package marker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/marker"
)

// The well-known numbers of these algorithms, one table for each: run with -v
// to read them.

// packet is one line of a marker's trace.
type packet struct {
	at   time.Duration
	n    int64
	in   marker.Color
	want marker.Color
	left string // the RFC's counters afterwards
}

const g, y, r = marker.Green, marker.Yellow, marker.Red

func trace(t *testing.T, m marker.Marker, packets []packet) {
	began := time.Now()
	for _, p := range packets {
		time.Sleep(p.at - time.Since(began))
		out, err := m.Mark(ctx, "k", p.n, p.in)
		require.NoError(t, err)
		t.Logf("  %4v: %3d %-6v -> %-6v %s", p.at, p.n, p.in, out, p.left)
		require.Equal(t, p.want, out)
	}
}

func TestClassicRFC2697(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("srTCM, CIR 100/s, CBS 300, EBS 200:")
		m, err := marker.NewSRTCM(algo.PerSecond(100), 300, 200)
		require.NoError(t, err)
		trace(t, m, []packet{
			{0, 200, g, g, "Tc 100 Te 200"},
			{0, 200, g, y, "Tc 100 Te 0"},
			{0, 150, g, r, "Tc 100 Te 0"},
			{0, 100, g, g, "Tc 0 Te 0"},
			{0, 50, y, r, "Tc 0 Te 0"},
			{2 * s, 50, y, r, "Tc 200 Te 0: yellow takes nothing from the committed bucket"},
			{2 * s, 150, g, g, "Tc 50 Te 0"},
			{6 * s, 100, y, y, "Tc 300 Te 50: 150 were spilled"},
			{6 * s, 1, r, r, "Tc 300 Te 50"},
			{6 * s, 300, g, g, "Tc 0 Te 50"},
			{6 * s, 60, g, r, "Tc 0 Te 50"},
			{6 * s, 50, g, y, "Tc 0 Te 0"},
		})
	})
}

func TestClassicRFC2698(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("trTCM, CIR 100/s, CBS 200, PIR 200/s, PBS 300:")
		m, err := marker.NewTRTCM(algo.PerSecond(100), 200, algo.PerSecond(200), 300)
		require.NoError(t, err)
		trace(t, m, []packet{
			{0, 200, g, g, "Tc 0 Tp 100"},
			{0, 100, g, y, "Tc 0 Tp 0"},
			{0, 1, g, r, "Tc 0 Tp 0"},
			{1 * s, 100, y, y, "Tc 100 Tp 100"},
			{1 * s, 100, g, g, "Tc 0 Tp 0"},
			{2 * s, 10, r, r, "Tc 100 Tp 200"},
			{2 * s, 150, g, y, "Tc 100 Tp 50"},
			{2 * s, 60, g, r, "Tc 100 Tp 50"},
			{2 * s, 50, g, g, "Tc 50 Tp 0"},
		})
	})
}

func TestClassicRFC4115(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("RFC 4115, CIR 100/s, CBS 200, EIR 50/s, EBS 100:")
		m, err := marker.NewRFC4115(algo.PerSecond(100), 200, algo.PerSecond(50), 100)
		require.NoError(t, err)
		trace(t, m, []packet{
			{0, 200, g, g, "Tc 0 Te 100: green leaves the excess alone"},
			{0, 60, y, y, "Tc 0 Te 40"},
			{0, 60, g, r, "Tc 0 Te 40"},
			{0, 40, g, y, "Tc 0 Te 0"},
			{1 * s, 60, y, r, "Tc 100 Te 50"},
			{1 * s, 50, y, y, "Tc 100 Te 0"},
			{1 * s, 100, g, g, "Tc 0 Te 0"},
			{9 * s, 100, y, y, "Tc 200 Te 0: nothing was spilled"},
		})
	})
}

package guides_test

import (
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func TestBacktest(t *testing.T) {
	var events iter.Seq[backtest.Event] = func(yield func(backtest.Event) bool) {
		for range 45 {
			if !yield(backtest.Event{At: time.Unix(0, 0), Key: "alice", Cost: 1}) {
				return
			}
		}
	}
	report, err := backtest.Run(events, backtest.Config{
		Limits: []algo.Spec{{Rate: algo.PerMinute(100), Burst: 20}},
		Curves: []algo.Spec{{Rate: algo.PerSecond(1)}, {Rate: algo.PerSecond(10)}},
	})
	require.NoError(t, err)
	require.EqualValues(t, 25, report.Limits[0].Denied)
	cover, ok := report.Curves[1].Cover(.999)
	require.True(t, ok)
	require.Equal(t, "10/s burst 45", cover.Spec.String())
}

func TestLimitInShadow(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/", ok)
	perClient := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(25)))
	handler := httpmw.Limit(algo.Shadow(perClient), keyfunc.ClientIP(), httpmw.WithName("per-client"))(mux)
	for range 30 {
		require.Equal(t, 200, get(handler, "/", "").Code)
	}
}

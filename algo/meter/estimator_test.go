package meter_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func estimator(t testing.TB, quantile float64, window, maxKeys int) *meter.Estimator {
	e, err := meter.NewEstimator(quantile, window, maxKeys)
	require.NoError(t, err)
	return e
}

// weighted is the quantile of observations, of which each weighs keep times as much as
// the one after it.
func weighted(ratios []float64, q, keep float64) float64 {
	type observation struct{ ratio, weight float64 }
	all, total := make([]observation, len(ratios)), 0.0
	for i, r := range ratios {
		all[i] = observation{r, math.Pow(keep, float64(len(ratios)-1-i))}
		total += all[i].weight
	}
	slices.SortFunc(all, func(a, b observation) int { return int(math.Copysign(1, a.ratio-b.ratio)) })
	left := q * total
	for _, o := range all {
		if left -= o.weight; left <= 1e-3 {
			return o.ratio
		}
	}
	return all[len(all)-1].ratio
}

// TestEstimatorError: the estimate is at least the quantile, and less than 2^(1/4)
// times it.
func TestEstimatorError(t *testing.T) {
	rnd := rand.New(rand.NewPCG(100, 101))
	for range cases.Count(200, 20_000) {
		q, window := .05+.9*rnd.Float64(), 1+rnd.IntN(300)
		e := estimator(t, q, window, 10)
		var ratios []float64
		const known = 1 << 16
		for range 30 + rnd.IntN(300) {
			settled := int64(known * math.Exp(2*rnd.NormFloat64()))
			e.Learn("c", "k", known, settled)
			ratios = append(ratios, float64(settled)/known)
		}
		keep := 1 - 1/float64(window)
		got := float64(e.Estimate("c", "k", known, 0))
		require.GreaterOrEqual(t, got*1.0001, known*weighted(ratios, q-1e-3, keep))
		require.Less(t, got, 1+known*math.Exp2(.25)*weighted(ratios, q+1e-3, keep))
	}
}

// New keys have the estimate of their class, and new classes the most.
func TestEstimatorWithoutObservations(t *testing.T) {
	e := estimator(t, .9, 100, 100)
	require.EqualValues(t, 4000, e.Estimate("large", "ann", 500, 4000))
	require.EqualValues(t, 500, e.Estimate("large", "ann", 500, 0))
	require.EqualValues(t, 1, e.Estimate("large", "ann", -5, 0))
	for range 10 {
		e.Learn("large", "ann", 500, 1000)
	}
	for _, key := range []string{"ann", "bob"} {
		require.EqualValues(t, 100, e.Estimate("large", key, 50, 4000))
		require.EqualValues(t, 40, e.Estimate("large", key, 50, 40))
	}
	require.EqualValues(t, 4000, e.Estimate("small", "ann", 50, 4000))
	for range 10 {
		e.Learn("large", "bob", 500, 250)
	}
	require.EqualValues(t, 100, e.Estimate("large", "ann", 50, 4000))
	require.EqualValues(t, 25, e.Estimate("large", "bob", 50, 4000))
}

// Old observations are forgotten.
func TestEstimatorAdapts(t *testing.T) {
	e := estimator(t, .9, 20, 100)
	for range 1000 {
		e.Learn("c", "k", 100, 800)
	}
	require.EqualValues(t, 800, e.Estimate("c", "k", 100, 0))
	for range 60 {
		e.Learn("c", "k", 100, 50)
	}
	require.EqualValues(t, 50, e.Estimate("c", "k", 100, 0))
}

// TestS3_EstimatorMisuse: nothing that is learned makes an estimate below 1 or above
// the most.
func TestS3_EstimatorMisuse(t *testing.T) {
	for _, bad := range []struct {
		quantile float64
		window   int
		keys     int
	}{{0, 1, 2}, {1, 1, 2}, {math.NaN(), 1, 2}, {.5, 0, 2}, {.5, 1, 1}} {
		_, err := meter.NewEstimator(bad.quantile, bad.window, bad.keys)
		require.Error(t, err, "%v", bad)
	}
	extreme := []int64{math.MinInt64, -1, 0, 1, 1 << 40, math.MaxInt64}
	for _, known := range extreme {
		for _, settled := range extreme {
			e := estimator(t, .5, 1, 2)
			e.Learn("c", "k", known, settled)
			for _, asked := range extreme {
				for _, most := range extreme {
					n := e.Estimate("c", "k", asked, most)
					require.GreaterOrEqual(t, n, int64(1))
					if most > 0 {
						require.LessOrEqual(t, n, most)
					}
				}
			}
		}
	}
	e := estimator(t, .5, 1, 2)
	e.Learn("c", "k", 1, -5)
	require.EqualValues(t, 7, e.Estimate("c", "k", 1, 7), "a negative cost is ignored")
}

// TestM1_EstimatorKeys: a flood of keys takes no memory beyond the stated, and neither
// the class nor a key in use is forgotten.
func TestM1_EstimatorKeys(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const keys = 1000
	before := heap()
	e := estimator(t, .9, 10, keys)
	for range 10 {
		e.Learn("c", "regular", 1, 64)
	}
	for i := range 20 * keys {
		e.Learn("c", "flood"+strconv.Itoa(i), 1, 1)
		if i%(keys/4) == 0 {
			require.EqualValues(t, 64, e.Estimate("c", "regular", 1, 1000))
		}
	}
	require.EqualValues(t, 1, e.Estimate("c", "new", 1, 1000))
	require.Less(t, heap()-before, int64(keys*(700+300)))
	runtime.KeepAlive(e)
}

func TestEstimatorAllocatesNothing(t *testing.T) {
	e := estimator(t, .9, 100, 10)
	e.Learn("c", "k", 1, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		e.Learn("c", "k", 100, 70)
		e.Estimate("c", "k", 100, 0)
	}))
}

// The costs of the first requests give the reservation for the next one.
func ExampleEstimator() {
	estimator := algo.Must(meter.NewEstimator(0.9, 100, 10_000))
	fmt.Println(estimator.Estimate("large", "ann", 200, 4000)) // nothing is known: the most

	for range 20 {
		estimator.Learn("large", "ann", 200, 800) // four times the input
	}
	fmt.Println(estimator.Estimate("large", "ann", 300, 4000))
	// Output:
	// 4000
	// 1200
}

// The bound of the error holds up to the largest ratio.
func TestEstimatorLargestRatio(t *testing.T) {
	e := algo.Must(meter.NewEstimator(.9, 10, 10))
	for range 10 {
		e.Learn("class", "key", 1, 1<<24)
	}
	require.Equal(t, int64(1<<24), e.Estimate("class", "key", 1, 0))
}

package sim

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// steady is a long run of one service at a load below 1.
func steady(model any, cores int, work Service, load float64) Scenario {
	const n = 300000
	sc := Scenario{ID: "theory", Model: model, Host: Host{Cores: cores}, Service: work, SLO: time.Hour}
	end := time.Duration(n / (load * sc.Capacity()) * 1e9)
	sc.Load, sc.To = Steady(load, end), end
	return sc
}

// sojourn is the mean time from arrival to answer, in mean service times.
func sojourn(t *testing.T, sc Scenario) float64 {
	t.Helper()
	w, err := play(sc, None(), 7)
	require.NoError(t, err)
	sum := int64(0)
	for _, took := range w.stats.times {
		sum += took
	}
	return float64(sum) / float64(len(w.stats.times)) / sc.Service.mean()
}

// erlangC is the probability that an arrival at c servers has to wait (M/M/c).
func erlangC(c int, rho float64) float64 {
	a, term, sum := float64(c)*rho, 1.0, 0.0
	for k := range c {
		if k > 0 {
			term *= a / float64(k)
		}
		sum += term
	}
	last := term * a / float64(c) / (1 - rho)
	return last / (sum + last)
}

// mmc is the mean time in a system of c servers, in service times.
func mmc(c int, rho float64) float64 { return 1 + erlangC(c, rho)/(float64(c)*(1-rho)) }

func TestErlangC(t *testing.T) {
	require.InDelta(t, .7, erlangC(1, .7), 1e-12, "with one server the load is the probability")
	require.InDelta(t, 1/3., erlangC(2, .5), 1e-12)
}

var (
	fixedWork = Service{CPU: ms}
	expWork   = Service{CPU: ms, Exponential: true}
	wideWork  = Service{CPU: ms, Sigma: 1}
	mixedWork = Service{CPU: 500 * us, Rare: 10500 * us, RareEach: 20}
)

// TestQueueingTheory compares mean times with the formula of each queue. The Go
// scheduler runs work below its quantum to the end, in an order that does not depend on
// the length, so its mean equals the mean of first come, first served.
func TestQueueingTheory(t *testing.T) {
	const rho = .7
	pollaczek := func(cv2 float64) float64 { return 1 + rho*(1+cv2)/(2*(1-rho)) }
	for name, row := range map[string]struct {
		sc   Scenario
		want float64
	}{
		"M/M/1":              {steady(Workers{}, 1, expWork, rho), 1 / (1 - rho)},
		"M/D/1":              {steady(Workers{}, 1, fixedWork, rho), pollaczek(0)},
		"M/G/1 lognormal":    {steady(Workers{}, 1, Service{CPU: ms, Sigma: .5}, rho), pollaczek(math.Exp(.25) - 1)},
		"M/M/4":              {steady(Workers{}, 4, expWork, rho), mmc(4, rho)},
		"M/M/4 elsewhere":    {steady(Remote{}, 4, expWork, rho), mmc(4, rho)},
		"M/M/1-PS":           {steady(Sharing{}, 1, expWork, rho), 1 / (1 - rho)},
		"M/D/1-PS":           {steady(Sharing{}, 1, fixedWork, rho), 1 / (1 - rho)},
		"M/lognormal/1-PS":   {steady(Sharing{}, 1, wideWork, rho), 1 / (1 - rho)},
		"M/two/1-PS":         {steady(Sharing{}, 1, mixedWork, rho), 1 / (1 - rho)},
		"M/M/4-PS":           {steady(Sharing{}, 4, expWork, rho), mmc(4, rho)},
		"M/D/4-PS":           {steady(Sharing{}, 4, fixedWork, rho), mmc(4, rho)},
		"M/lognormal/4-PS":   {steady(Sharing{}, 4, wideWork, rho), mmc(4, rho)},
		"M/D/1 in Go":        {steady(GoScheduler{}, 1, fixedWork, rho), pollaczek(0)},
		"M/M/1 in Go":        {steady(GoScheduler{}, 1, expWork, rho), 1 / (1 - rho)},
		"M/M/4 in Go":        {steady(GoScheduler{}, 4, expWork, rho), mmc(4, rho)},
		"a delay and no CPU": {steady(Sharing{}, 64, Service{CPU: ms, IO: 20 * ms}, .1), 21},
	} {
		t.Run(name, func(t *testing.T) {
			require.InEpsilon(t, row.want, sojourn(t, row.sc), .04)
		})
	}
}

// TestCollapse: with a closed form for the collapse, the throughput
// under n requests at once is c/(1+x(n-c)).
func TestCollapse(t *testing.T) {
	sc := steady(Sharing{Collapse: .01}, 4, fixedWork, 5)
	sc.Load, sc.From, sc.To = Steady(5, 10*sec), 5*sec, 10*sec
	r, err := Run(sc, Fixed(54), 1)
	require.NoError(t, err)
	require.InEpsilon(t, 1/(1+.01*50), r.Goodput, .01)
}

func TestErlangLoss(t *testing.T) {
	// Without a queue the share that is lost is Erlang's B, for any distribution.
	sc := steady(Sharing{}, 4, wideWork, .85)
	r, err := Run(sc, Fixed(4), 1)
	require.NoError(t, err)
	a, lost := 4*.85, 1.0
	for k := 1.0; k <= 4; k++ {
		lost = a * lost / (k + a*lost)
	}
	require.InEpsilon(t, lost, r.Rejected, .02)
}

func TestPoisson(t *testing.T) {
	load := Ramp(3, 10*sec, 30*sec, 40*sec)
	require.InDelta(t, (.85*10+(.85+3)/2*20+.85*10)/40, load.mean(0, 40*sec), 1e-9)
	sc := Scenario{Model: Sharing{}, Host: Host{Cores: 1}, Service: fixedWork, Load: load, To: 40 * sec, SLO: sec}
	w, err := play(sc, Fixed(1), 3)
	require.NoError(t, err)
	for at := time.Duration(0); at < 40*sec; at += 5 * sec {
		want := load.mean(at, at+5*sec) * 5000
		require.InDelta(t, want, w.stats.sum(at, at+5*sec).arrived, 4*math.Sqrt(want))
	}
	var n, square float64
	for _, b := range w.stats.bins[:100] {
		n += float64(b.arrived)
		square += float64(b.arrived * b.arrived)
	}
	mean := n / 100
	require.InEpsilon(t, mean, square/100-mean*mean, .5, "the variance of a Poisson count is its mean")
}

func TestCarries(t *testing.T) {
	require.InDelta(t, .8, carries(.8, .1), 1e-12)
	require.InDelta(t, 1, carries(5, 0), 1e-12)
	a := carries(3, .1)
	require.InDelta(t, 1, a+(3-a)*.1, 1e-12, "admissions and rejections use the whole capacity")
	require.Zero(t, carries(20, .1))
}

func TestQuantile(t *testing.T) {
	require.Zero(t, quantile(.5, nil))
	require.EqualValues(t, 3, quantile(.5, []int64{5, 1, 3}))
	require.EqualValues(t, 5, quantile(1, []int64{5, 1, 3}))
}

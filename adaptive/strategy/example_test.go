package strategy_test

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// The signal is a queue of the application.
func ExampleBBR() {
	backlog := 150.0
	queue := signal.Func(func() (level float64, ok bool) { return backlog / 100, true })
	bbr := strategy.BBR(
		strategy.WithSignal(signal.MaxOf(queue, signal.CPU(signal.Threshold(0.9)))),
		adaptive.WithLimits(5, 30))
	l := algo.Must(adaptive.New(bbr))
	fmt.Println(l.Limit())
	lease, _ := l.Acquire(background, "", 1)
	defer lease.Release(algo.Succeeded)
	fmt.Println(l.Explain().Strategies[0].Overloaded)
	// Output:
	// 30
	// true
}

func ExampleGradient2() {
	s := strategy.Gradient2(strategy.WithInitial(50))
	fmt.Println(s.Limit())
	// Output: 50
}

func ExampleVegas() {
	s := strategy.Vegas(adaptive.WithLimits(1, 100))
	fmt.Println(s.Limit())
	// Output: 20
}

func ExampleAIMD() {
	s := strategy.AIMD(adaptive.WithLimits(1, 200), strategy.WithTimeout(time.Second))
	s.Observe(adaptive.Sample{RTT: 10 * time.Millisecond, InFlight: 20})
	fmt.Println(s.Limit())
	s.Observe(adaptive.Sample{RTT: 2 * time.Second, InFlight: 20})
	fmt.Println(s.Limit())
	// Output:
	// 21
	// 18
}

func ExampleCompatKratos() {
	l := algo.Must(adaptive.New(strategy.CompatKratos()))
	lease, _ := l.Acquire(background, "", 1)
	defer lease.Release(algo.Succeeded)
	fmt.Println(lease.Allowed)
	// Output: true
}

// Rates over half a minute, for a service with few requests.
func ExampleWithWindow() {
	bbr := strategy.BBR(strategy.WithWindow(30*time.Second, 60), adaptive.WithLimits(4, 400))
	fmt.Println(bbr.Limit())
	// Output: 400
}

func ExampleNewWindow() {
	w, err := strategy.NewWindow(10*time.Second, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Add(5 * time.Millisecond)
	fmt.Println(w.MaxPass() <= 1, w.MinRT() <= 5*time.Millisecond)
	// Output: true true
}

package signal_test

import (
	"fmt"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
)

// Several signals of the machine. One that cannot be read, such as Throttled without
// a quota, is unknown and shows no overload.
func ExampleMaxOf() {
	overload := signal.MaxOf(
		signal.CPU(signal.Threshold(0.8)),
		signal.Memory(signal.Threshold(0.9)),
		signal.Throttled(),
	)
	_, err := adaptive.New(strategy.BBR(strategy.WithSignal(overload)))
	fmt.Println(err)
	// Output: <nil>
}

// The queue in front of the processor, read live.
func ExampleRunnable() {
	s := signal.Runnable(signal.Threshold(1000))
	level, ok := s.Read()
	fmt.Println(s, level < 1, ok)
	// Output: runnable true true
}

// Overload is a wait of half a second between ready and running.
func ExampleSchedLatency() {
	_, err := adaptive.New(strategy.BBR(strategy.WithSignal(signal.SchedLatency(signal.Threshold(0.5)))))
	fmt.Println(err)
	_, err = adaptive.New(strategy.BBR(strategy.WithSignal(signal.SchedLatency(signal.Threshold(-1)))))
	fmt.Println(err)
	// Output:
	// <nil>
	// adaptive: New: BBR: sched latency signal: Threshold: is -1, want more than 0
}

// The load of a machine with other processes.
func ExampleLoad1() {
	_, err := adaptive.New(strategy.BBR(strategy.WithSignal(signal.Load1(signal.Threshold(2)))))
	fmt.Println(err)
	// Output: <nil>
}

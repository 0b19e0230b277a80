package marker_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/marker"
)

// A single rate marker: the length of a burst decides.
func ExampleNewSRTCM() {
	colors, err := marker.NewSRTCM(algo.PerHour(100), 300, 200)
	if err != nil {
		panic(err)
	}
	for _, n := range []int64{300, 150, 100} {
		color, _ := colors.Mark(context.Background(), "tenant", n, marker.Green)
		fmt.Println(n, color)
	}
	// Output:
	// 300 green
	// 150 yellow
	// 100 red
}

// A two rate marker: the edge marks, the service re-marks and is never greener.
func ExampleNewTRTCM() {
	edge, err := marker.NewTRTCM(algo.PerHour(100), 200, algo.PerHour(400), 500)
	if err != nil {
		panic(err)
	}
	service, err := marker.NewTRTCM(algo.PerHour(100), 500, algo.PerHour(400), 300)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, n := range []int64{200, 200, 200} {
		first, _ := edge.Mark(ctx, "tenant", n, marker.Green)
		second, _ := service.Mark(ctx, "tenant", n, first)
		fmt.Println(first, second)
	}
	// Output:
	// green green
	// yellow red
	// red red
}

// RFC 4115: excess of its own, whatever the committed rate is.
func ExampleNewRFC4115() {
	colors, err := marker.NewRFC4115(algo.PerHour(100), 100, algo.PerHour(10), 50)
	if err != nil {
		panic(err)
	}
	for range 3 {
		color, _ := colors.Mark(context.Background(), "tenant", 50, marker.Green)
		fmt.Print(color, " ")
	}
	color, _ := colors.Mark(context.Background(), "tenant", 50, marker.Green)
	fmt.Println(color)
	// Output: green green yellow red
}

// Two limiters over one marker: cheap work passes while it is Yellow.
func ExampleLimit() {
	colors, err := marker.NewSRTCM(algo.PerHour(1), 1, 1)
	if err != nil {
		panic(err)
	}
	dear, cheap := marker.Limit(colors, marker.Green), marker.Limit(colors, marker.Yellow)
	for _, l := range []algo.Limiter{dear, dear, cheap, cheap} {
		lease, _ := l.Acquire(context.Background(), "user", 1)
		fmt.Print(lease.Allowed, " ")
	}
	// Output: true false true false
}

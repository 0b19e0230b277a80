package guides_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/marker"
)

func fromCache() int { return http.StatusNonAuthoritativeInfo }

func coloredStatus(ctx context.Context, colors marker.Marker) int {
	switch color, err := colors.Mark(ctx, "tenant", 1, marker.Green); {
	case err != nil || color == marker.Red:
		return http.StatusTooManyRequests
	case color == marker.Yellow:
		return fromCache()
	}
	return http.StatusOK
}

// Two hundred requests are served in full, as many from the cache.
func Example_colors() {
	ctx := context.Background()
	colors := algo.Must(marker.NewTRTCM(algo.PerMinute(100), 200, algo.PerMinute(300), 400))

	counts := map[int]int{}
	for range 395 {
		counts[coloredStatus(ctx, colors)]++
	}
	dear, cheap := marker.Limit(colors, marker.Green), marker.Limit(colors, marker.Yellow)

	fmt.Println(counts[http.StatusOK] >= 200, counts[http.StatusTooManyRequests])
	fmt.Println(algo.Must(dear.Acquire(ctx, "tenant", 3)).Allowed, algo.Must(cheap.Acquire(ctx, "tenant", 3)).Allowed)
	// Output:
	// true 0
	// false true
}

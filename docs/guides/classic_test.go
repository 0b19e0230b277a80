package guides_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/classic"
)

// Limits with the numbers of other programs.
func Example_classic() {
	perAddress, err := classic.NewNginx(algo.PerSecond(2), 5, 0) // rate=2r/s burst=5
	backend, err2 := classic.NewSmoothWarmingUp(algo.PerSecond(100), time.Minute, 3, 2*time.Second)
	ledger, err3 := classic.NewStrict(algo.PerHour(1000), 500)

	fmt.Println(err, err2, err3)
	for _, l := range []*algo.RateLimiter{perAddress, backend, ledger} {
		lease, _ := l.Acquire(context.Background(), "key", 6)
		fmt.Println(lease.Allowed, l.Spec())
	}
	// Output:
	// <nil> <nil> <nil>
	// true nginx 2/s burst 5
	// true smooth-warming-up 100/s wait 2s warmup 1m0s cold 3
	// true strict 1000/h burst 500
}

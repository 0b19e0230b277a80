package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// Peers give every instance the whole limit when Redis is away. Here the parts
// of eight instances add up to the limit, or to a unit for each if it is smaller.
func TestW3_SharesOfTheFleetAddUpToTheLimit(t *testing.T) {
	t.Parallel()
	for _, burst := range []int64{100, 7, 3} {
		t.Run(fmt.Sprint(burst), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			f := startFleet(t, 8, server.Addr(), algo.Per(burst, 24*time.Hour))
			f.settled(t)
			server.Kill()
			var admitted int64
			for i, l := range f.limiters {
				trip(t, l, f.events[i])
				for range 2 * burst {
					if acquire(t, l, "alice", 1).Allowed {
						admitted++
					}
				}
			}
			require.Equal(t, max(burst, 8), admitted)
		})
	}
}

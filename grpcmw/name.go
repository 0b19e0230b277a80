package grpcmw

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/algo"
)

const longestName = 64

// checkName accepts what needs no escaping on any wire.
func checkName(name string) error {
	if name == "" || len(name) > longestName {
		return fmt.Errorf("%q has %d bytes, want 1 to %d", name, len(name), longestName)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("%q has characters other than letters, digits, dot, underscore and hyphen", name)
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '_' || c == '-'
}

// unbounded is the limit of what is in flight while an adaptive limiter sees no
// reason for one. It may deny for another: the queue in front of the processor.
const unbounded = math.MaxInt32

// defaultName says what the limit is, if there is one: "100-per-60s",
// "64-concurrent-requests".
func defaultName(l algo.Limiter) string {
	if d, ok := algo.Describe(l); ok && (d.Quota != unbounded || d.Unit != algo.ConcurrentRequests) {
		return d.String()
	}
	return "default"
}

// seconds rounds up: nobody may come back too early.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

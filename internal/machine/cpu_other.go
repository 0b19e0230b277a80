//go:build !unix && !windows

package machine

import "time"

func cpuTime() (time.Duration, bool) { return 0, false }

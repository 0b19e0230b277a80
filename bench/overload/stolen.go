package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticks are times of all processors, in the unit of the kernel. Stolen ones went to other virtual
// machines of the host: figures with many of them describe the host, not the server.
type ticks struct{ all, stolen float64 }

// ticksNow are unknown, 0, where there is no /proc/stat.
func ticksNow() ticks {
	stat, _ := os.ReadFile("/proc/stat")
	return ticksOf(string(stat))
}

// ticksOf sums the first line of /proc/stat up to the eighth time, the stolen one; those behind it are
// parts of others.
func ticksOf(stat string) (t ticks) {
	const stolen = 8
	fields := strings.Fields(stat)
	for i := 1; i <= stolen && i < len(fields); i++ {
		t.stolen, _ = strconv.ParseFloat(fields[i], 64) // the last one
		t.all += t.stolen
	}
	return t
}

// since is the stolen share of the time after an earlier reading.
func (t ticks) since(before ticks) float64 {
	return max(t.stolen-before.stolen, 0) / max(t.all-before.all, 1)
}

// stolen is the line about it, empty where nothing was.
func (r results) stolen() string {
	sum, worst := 0.0, 0.0
	for _, f := range r.cells {
		sum += f.Stolen
		worst = max(worst, f.Stolen)
	}
	if sum == 0 {
		return ""
	}
	return fmt.Sprintf("the host took %.1f %% of the processors' time, %.0f %% in the worst cell\n", 100*sum/float64(len(r.cells)), 100*worst)
}

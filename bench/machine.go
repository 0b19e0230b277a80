package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine has the facts on which the figures depend.
type machine struct {
	cpu, system, clocksource string
	cores                    int
	virtual                  bool
	clock                    float64 // ns that one reading takes
	peers                    []string
}

func thisMachine() machine {
	info, _ := os.ReadFile("/proc/cpuinfo")
	source, _ := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	m := machine{
		cpu:         or(cpuinfo(info, "model name"), "unknown"),
		system:      runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version(),
		clocksource: or(string(bytes.TrimSpace(source)), "unknown"),
		cores:       runtime.NumCPU(),
		virtual:     strings.Contains(" "+cpuinfo(info, "flags")+" ", " hypervisor "),
		clock:       clockCost(),
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		m.peers = versions(build.Deps)
	}
	return m
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// cpuinfo is the value of the first line with that field.
func cpuinfo(info []byte, field string) string {
	lines := bufio.NewScanner(bytes.NewReader(info))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(name) == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// clockCost is the least of several means, in ns.
func clockCost() float64 {
	const n = 200_000
	least := time.Hour
	start := time.Now()
	var sum time.Duration
	for range 9 {
		begin := time.Now()
		for range n {
			sum += time.Since(start)
		}
		least = min(least, time.Since(begin))
	}
	runtime.KeepAlive(sum)
	return float64(least) / n
}

// compared are the modules that sluice is compared with.
var compared = []string{
	"golang.org/x/time", "golang.org/x/sync", "go.uber.org/ratelimit", "github.com/juju/ratelimit",
	"github.com/sethvargo/go-limiter", "github.com/throttled/throttled/v2", "github.com/ulule/limiter/v3",
	"github.com/go-chi/httprate", "github.com/didip/tollbooth/v7", "github.com/RussellLuo/slidingwindow",
	"github.com/failsafe-go/failsafe-go", "github.com/go-kratos/aegis", "github.com/go-kratos/kratos/v2",
	"github.com/zeromicro/go-zero", "github.com/grpc-ecosystem/go-grpc-middleware/v2",
	"google.golang.org/grpc", "github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9",
}

func versions(deps []*debug.Module) (vs []string) {
	for _, path := range compared {
		for _, d := range deps {
			if d.Path == path {
				vs = append(vs, fmt.Sprintf("%s %s", d.Path, d.Version))
			}
		}
	}
	return vs
}

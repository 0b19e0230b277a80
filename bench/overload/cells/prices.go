package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// ways to deny a request, as the server's -price names them; the first of each is the floor.
var ways = map[string][]string{
	"HTTP/1.1": {"bare", "bare, a text", "bare, a text and Retry-After", "httpmw", "httpmw, no fields", "httpmw, no body", "httpmw, with an event", "listener"},
	"gRPC":     {"status.Error", "grpcmw", "grpcmw, with an event", "tap"},
}

// prices are the processor times of denials, in turns.
func prices(r rig) error {
	const rounds = 5
	fmt.Print("\n## The price of a denial\n\nProcessor time of the server, on one processor, for each denial; median of five rounds in turns. The floor is a handler or an interceptor that only denies.\n\n| protocol | denied by | us | of the floor |\n|---|---|---|---|\n")
	r.work, r.procs = "500us", 1
	for _, r.protocol = range []string{"HTTP/1.1", "gRPC"} {
		took := map[string][]float64{}
		for range rounds {
			for _, way := range ways[r.protocol] {
				r.args = []string{"-price", way}
				if err := r.with(func(r rig) error {
					us, err := r.price()
					took[way] = append(took[way], us)
					return err
				}); err != nil {
					return err
				}
			}
		}
		var floor float64
		for i, way := range ways[r.protocol] {
			slices.Sort(took[way])
			us := took[way][rounds/2]
			if i == 0 {
				floor = us
			}
			fmt.Printf("| %s | %s | %.1f | %.2f |\n", r.protocol, way, us, us/floor)
		}
	}
	return nil
}

// price is the processor time of a denial, us.
func (r rig) price() (float64, error) {
	const clients = 16
	before, err := processorTime(r.pid)
	if err != nil {
		return 0, err
	}
	denied := 0
	if r.rpc != nil {
		denied = r.closed(clients, length()).denied
	} else {
		_, other, err := loadgen.Closed(r.addr, clients, length())
		if err != nil {
			return 0, err
		}
		denied = int(other)
	}
	after, err := processorTime(r.pid)
	if err == nil && denied == 0 {
		err = fmt.Errorf("nothing was denied")
	}
	return float64((after - before).Nanoseconds()) / 1e3 / float64(max(denied, 1)), err
}

// processorTime is that of a process, in steps of 10 ms; Linux only.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

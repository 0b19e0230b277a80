// Package host has the facts about a machine on which figures depend.
package host

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Facts are shown with the figures.
type Facts struct {
	CPU, System string
	Cores       int
	Virtual     bool
	Peers       []string // versions of the modules that are compared
}

// This is the machine. The versions of the modules are those of the program at bin; "": of
// this one.
func This(bin string, modules ...string) Facts {
	f := Facts{CPU: "unknown", System: runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version(), Cores: runtime.NumCPU()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		f.read(string(info))
	}
	build, _ := debug.ReadBuildInfo()
	if bin != "" {
		build, _ = buildinfo.ReadFile(bin)
	}
	if build == nil {
		return f
	}
	for _, d := range build.Deps {
		if slices.Contains(modules, d.Path) {
			f.Peers = append(f.Peers, d.Path+" "+d.Version)
		}
	}
	return f
}

// read takes in /proc/cpuinfo. The number of processors that the kernel shows counts: a process
// may be kept on one.
func (f *Facts) read(info string) {
	cores := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "processor":
			cores++
		case "model name":
			f.CPU = value
		case "flags":
			f.Virtual = strings.Contains(" "+value+" ", " hypervisor ")
		}
	}
	f.Cores = max(cores, f.Cores)
}

// String is a line.
func (f Facts) String() string {
	kind := "no sign of a hypervisor"
	if f.Virtual {
		kind = "a virtual machine"
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", f.CPU, f.Cores, kind, f.System)
}

// Processors parses a list of numbers of processors, such as 1,2,4, and drops those above most.
func Processors(list string, most int) (procs []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of processors, as in 1,2,4", text)
		}
		if n <= most && !slices.Contains(procs, n) {
			procs = append(procs, n)
		}
	}
	if len(procs) == 0 {
		return nil, fmt.Errorf("this machine has only %d processors, not %s", most, list)
	}
	return procs, nil
}

package main

import (
	"debug/buildinfo"
	"os"
	"runtime"
	"strings"
)

// machine has the facts on which the figures depend, on a line of its own in
// the records.
type machine struct {
	CPU, System string
	Cores       int
	Virtual     bool
	Peers       []string
}

// thisMachine also reads the versions of the peers from the server's program.
func thisMachine(bin string) machine {
	m := machine{CPU: "unknown", System: runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version(), Cores: runtime.NumCPU()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.read(string(info))
	}
	if build, err := buildinfo.ReadFile(bin); err == nil {
		for _, d := range build.Deps {
			switch d.Path {
			case "github.com/go-kratos/aegis", "github.com/failsafe-go/failsafe-go", "github.com/zeromicro/go-zero", "google.golang.org/grpc":
				m.Peers = append(m.Peers, d.Path+" "+d.Version)
			}
		}
	}
	return m
}

// read takes in /proc/cpuinfo. The number of processors that the kernel shows
// counts: the generator itself is kept on one.
func (m *machine) read(info string) {
	cores := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "processor":
			cores++
		case "model name":
			m.CPU = value
		case "flags":
			m.Virtual = strings.Contains(" "+value+" ", " hypervisor ")
		}
	}
	m.Cores = max(cores, m.Cores)
}

func (m machine) save(path string) error {
	return appendLine(path, struct{ Machine machine }{m})
}

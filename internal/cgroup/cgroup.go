// Package cgroup reads the resource limits of this process from the control groups of
// Linux, of version 1, version 2 and both. Elsewhere there are none.
package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Group is one control group as a controller sees it: a directory, and whether
// it belongs to version 2.
type Group struct {
	dir string
	v2  bool
}

// Of returns the control groups of this process for a controller ("cpu",
// "cpuacct", "memory"), its own first and then all those around it, in the
// hierarchies of both versions: where both are mounted, either may hold the
// controller. HOST_PROC and HOST_ROOT move /proc and / as they do for gopsutil.
// The list of mounts may have thousands of lines, so the groups are kept, and looked up
// again every ten seconds, in the background.
func Of(controller string) []Group {
	id := place{controller, os.Getenv("HOST_PROC"), os.Getenv("HOST_ROOT")}
	known.mu.Lock()
	defer known.mu.Unlock()
	at := known.all[id]
	switch {
	case at == nil:
		at = &lookup{groups: find(id), at: time.Now()}
		known.all[id] = at
	case time.Since(at.at).Abs() >= lookAgain:
		at.at = time.Now()
		go func() {
			groups := find(id)
			known.mu.Lock()
			defer known.mu.Unlock()
			at.groups = groups
		}()
	}
	return at.groups
}

const lookAgain = 10 * time.Second

// place is what the groups of a lookup depend on.
type place struct{ controller, proc, root string }

type lookup struct {
	groups []Group
	at     time.Time
}

var known = struct {
	mu  sync.Mutex
	all map[place]*lookup
}{all: map[place]*lookup{}}

// find reads the groups.
func find(id place) (groups []Group) {
	controller, proc := id.controller, id.proc
	if proc == "" {
		proc = "/proc"
	}
	memberships, _ := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	mounts, _ := os.ReadFile(filepath.Join(proc, "self/mountinfo"))
	for line := range strings.Lines(string(memberships)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, own, found := strings.Cut(rest, ":")
		v2 := controllers == ""
		if !found || !v2 && !slices.Contains(strings.Split(controllers, ","), controller) {
			continue
		}
		for line := range strings.Lines(string(mounts)) {
			if m, ok := parseMount(line); ok && m.holds(v2, controller) {
				groups = append(groups, m.around(id.root, own, v2)...)
				break
			}
		}
	}
	return groups
}

// mount is a line of /proc/self/mountinfo.
type mount struct{ root, point, kind, options string }

func parseMount(line string) (mount, bool) {
	before, after, found := strings.Cut(line, " - ")
	a, b := strings.Fields(before), strings.Fields(after)
	if !found || len(a) < 5 || len(b) < 3 {
		return mount{}, false
	}
	return mount{root: a[3], point: a[4], kind: b[0], options: b[2]}, true
}

func (m mount) holds(v2 bool, controller string) bool {
	if v2 {
		return m.kind == "cgroup2"
	}
	return m.kind == "cgroup" && slices.Contains(strings.Split(m.options, ","), controller)
}

// around lists the directories from the group own up to the mount point. In a
// container the mount may begin at the group itself, or own may lie outside the mount;
// then the mount point is the only directory.
func (m mount) around(root, own string, v2 bool) (groups []Group) {
	relative := "/"
	if rest, ok := strings.CutPrefix(own, strings.TrimSuffix(m.root, "/")); ok && strings.HasPrefix(rest, "/") {
		relative = path.Clean(rest)
	}
	for {
		dir := filepath.Join(root, "/", m.point, relative)
		groups = append(groups, Group{dir, v2})
		if relative == "/" {
			return groups
		}
		relative = path.Dir(relative)
	}
}

// file returns the fields of a file in the group.
func (g Group) file(name string) []string {
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// Number is the only field of a file, as a number.
func (g Group) Number(name string) (float64, bool) {
	return numberAt(g.file(name), 0)
}

// Stat is the value of a name in a file of names and values.
func (g Group) Stat(file, name string) (float64, bool) {
	fields := g.file(file)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == name {
			return numberAt(fields, i+1)
		}
	}
	return 0, false
}

func numberAt(fields []string, i int) (float64, bool) {
	if i >= len(fields) {
		return 0, false
	}
	x, err := strconv.ParseFloat(fields[i], 64)
	return x, err == nil
}

// Quota is the processor time that the group may use, in processors, false if it is not
// limited.
func (g Group) Quota() (cpus float64, ok bool) {
	var most, period float64
	var haveMost, havePeriod bool
	if g.v2 {
		limits := g.file("cpu.max") // "max 100000" or "50000 100000"
		most, haveMost = numberAt(limits, 0)
		period, havePeriod = numberAt(limits, 1)
	} else {
		most, haveMost = g.Number("cpu.cfs_quota_us") // -1: not limited
		period, havePeriod = g.Number("cpu.cfs_period_us")
	}
	if !haveMost || !havePeriod || most <= 0 || period <= 0 {
		return 0, false
	}
	return most / period, true
}

// Tightest is the group around this process with the smallest quota, and that quota. An
// outer group limits everything inside it, so all groups count.
func Tightest() (g Group, cpus float64, ok bool) {
	for _, one := range Of("cpu") {
		if q, limited := one.Quota(); limited && (!ok || q < cpus) {
			g, cpus, ok = one, q, true
		}
	}
	return g, cpus, ok
}

// Used is the processor time that the group has used, in seconds. Version 1
// counts it in a hierarchy of its own, where the group has the same place.
func (g Group) Used() (seconds float64, ok bool) {
	if g.v2 {
		us, ok := g.Stat("cpu.stat", "usage_usec")
		return us / 1e6, ok
	}
	if ns, ok := g.Number("cpuacct.usage"); ok { // both in one hierarchy
		return ns / 1e9, true
	}
	cpu, acct := Of("cpu"), Of("cpuacct")
	for i := range cpu {
		// Counted from the outside: the own group is the first of either list.
		if j := len(acct) - len(cpu) + i; cpu[i] == g && j >= 0 {
			ns, ok := acct[j].Number("cpuacct.usage")
			return ns / 1e9, ok
		}
	}
	return 0, false
}

// Memory is the memory that the group uses, without the file cache, which the kernel can drop
// whether it was read lately (active) or not, and its limit, in bytes; false if it is not limited.
func (g Group) Memory() (used, most float64, ok bool) {
	names := [...]string{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"}
	if g.v2 {
		names = [...]string{"memory.max", "memory.current", ""}
	}
	most, limited := g.Number(names[0])
	used, known := g.Number(names[1])
	const none = 1 << 60 // "no limit" in version 1 is just below 2^63
	if !limited || !known || most <= 0 || most >= none {
		return 0, 0, false
	}
	active, _ := g.Stat("memory.stat", names[2]+"active_file")
	inactive, _ := g.Stat("memory.stat", names[2]+"inactive_file")
	return max(used-active-inactive, 0), most, true
}
